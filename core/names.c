/* Edit distance by the usual table, of which three rows are kept: the adjacent swap looks back two.
 * No substring is edited twice ("optimal string alignment"), which is how people mistype. */
#include "names.h"

#include <stdlib.h>
#include <string.h>

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

/* `rows` has room for three rows of strlen(b) + 1 numbers. */
static int distance(const char *a, const char *b, int *rows)
{
    int length_a = (int)strlen(a), length_b = (int)strlen(b);
    int *before = rows, *above = before + length_b + 1, *row = above + length_b + 1;
    for (int j = 0; j <= length_b; j++)
        above[j] = j;
    for (int i = 1; i <= length_a; i++) {
        row[0] = i;
        for (int j = 1; j <= length_b; j++) {
            int edits = above[j - 1] + (a[i - 1] != b[j - 1]);
            edits = smaller(edits, smaller(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                edits = smaller(edits, before[j - 2] + 1);
            row[j] = edits;
        }
        int *oldest = before;
        before = above;
        above = row;
        row = oldest;
    }
    return above[length_b];
}

const char *tl_name_nearest(const char *name, const char *const *names, int count)
{
    size_t length = strlen(name);
    int *rows = malloc(3 * (length + 1) * sizeof *rows);
    if (!rows)
        return NULL; /* an error message without its hint */
    const char *nearest = NULL;
    int fewest = (int)(length / 2) + 1;
    for (int i = 0; i < count; i++) {
        /* A name longer than one and a half times this is too far, whatever it says. */
        if (strlen(names[i]) > length + length / 2)
            continue;
        int edits = distance(names[i], name, rows);
        if (edits < fewest) {
            fewest = edits;
            nearest = names[i];
        }
    }
    free(rows);
    return nearest;
}
