/* Nearest names, for errors that help. */
#ifndef TL_NAMES_H
#define TL_NAMES_H

#ifdef __cplusplus
extern "C" {
#endif

/* Of `count` names, the one fewest edits (Damerau-Levenshtein, adjacent swaps count one) away from
 * `name`; NULL when none is within half of its length. Ties go to the first. */
const char *tl_name_nearest(const char *name, const char *const *names, int count);

#ifdef __cplusplus
}
#endif
#endif
