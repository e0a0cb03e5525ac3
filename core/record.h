/* Result files: TSV with a '#' provenance block and one header row, appended row by row.
 *
 * Every row is written whole and flushed, so that a killed process loses at most the row it was
 * writing. Cells are text; a tab or a newline inside one is an error.
 */
#ifndef TL_RECORD_H
#define TL_RECORD_H

#include <stdbool.h>

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tl_record;

/* Creates `path` (replacing it), writes the provenance text, each of its lines prefixed "# ", then
 * the header. TL_ERR_IO names the path and the reason (absent folder, not writable, disk full). */
enum tl_status tl_record_create(struct tl_record **out, const char *path, const char *provenance,
                                const char *const *columns, int num_columns);

/* Opens an existing file to append to it; its header row must hold exactly these columns, and its
 * last line must be whole (TL_ERR_FORMAT, path:line). */
enum tl_status tl_record_append(struct tl_record **out, const char *path,
                                const char *const *columns, int num_columns);

/* Writes and flushes one row of num_columns cells. */
enum tl_status tl_record_row(struct tl_record *record, const char *const *cells, int num_cells);

/* Flushes and closes; safe on NULL. Reports what fclose reports. */
enum tl_status tl_record_close(struct tl_record *record);

#ifdef __cplusplus
}
#endif
#endif
