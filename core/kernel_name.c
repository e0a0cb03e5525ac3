/* The function's own name out of a name mangled by the Itanium C++ ABI; see activity.h.
 *
 * <mangled> is _Z, then <length><identifier>, or N ... E around several of them with template
 * arguments I ... E between; what is wanted is the last identifier outside template arguments.
 */
#include "activity.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct word {
    const char *text;
    size_t length;
};

/* Reads <length><identifier> at *at; false where there is none or it is cut short. */
static bool read_word(const char **at, struct word *word)
{
    char *end;
    if (!isdigit((unsigned char)**at))
        return false;
    unsigned long length = strtoul(*at, &end, 10);
    if (length == 0 || strlen(end) < length)
        return false;
    word->text = end;
    word->length = length;
    *at = end + length;
    return true;
}

/* Skips template arguments at *at ("I...E"); false where they do not end. Identifiers are jumped
 * over whole, since they may hold any letter. */
static bool skip_arguments(const char **at)
{
    int depth = 0;
    struct word ignored;
    do {
        if (**at == 'L') { /* a literal: L<type><value>E, or L_Z<name>E; digits are a value here */
            depth++;
            ++*at;
            if (!**at || **at == '_' || isdigit((unsigned char)**at))
                continue;
            *at += **at != 0; /* the type, in which an E is no end */
            while (isalnum((unsigned char)**at) && **at != 'E')
                ++*at;
        } else if (**at == 'S' && strchr("tabsiod", (*at)[1]) && (*at)[1]) {
            *at += 2;
        } else if (**at == 'S' || **at == 'T') { /* an earlier part, by number: S_ S0_ T_ T0_ */
            while (**at && **at != '_')
                ++*at;
            *at += **at == '_';
        } else if (isdigit((unsigned char)**at)) {
            if (!read_word(at, &ignored))
                return false;
        } else if (**at == 'I' || **at == 'N' || **at == 'J' || **at == 'X' || **at == 'F') {
            depth++;
            ++*at;
        } else if (**at == 'E') {
            depth--;
            ++*at;
        } else if (**at) {
            ++*at;
        } else {
            return false;
        }
    } while (depth > 0);
    return true;
}

static bool is_internal(const struct word *word)
{
    return word->length > 9 && (memcmp(word->text, "_INTERNAL", 9) == 0 ||
                                memcmp(word->text, "_GLOBAL__", 9) == 0);
}

static bool find_name(const char *at, struct word *name)
{
    if (strncmp(at, "_Z", 2) != 0)
        return false;
    at += 2;
    bool nested = *at == 'N', found = false;
    at += nested;
    at += *at == 'L'; /* a static function */
    for (;;) {
        struct word word;
        if (strncmp(at, "St", 2) == 0) {
            at += 2;
        } else if (*at == 'I' && found) {
            if (!skip_arguments(&at))
                return found;
        } else if (read_word(&at, &word)) {
            if (!is_internal(&word)) {
                *name = word;
                found = true;
            }
            at += *at == 'L';
        } else {
            return found;
        }
        if (!nested && found)
            return true;
    }
}

void tl_kernel_name_short(const char *symbol, char *out, size_t size)
{
    struct word name = {symbol, strlen(symbol)};
    if (!find_name(symbol, &name)) {
        name.text = symbol;
        name.length = strlen(symbol);
    }
    snprintf(out, size, "%.*s", (int)name.length, name.text);
}
