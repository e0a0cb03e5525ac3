/* TMA tensor maps over whole tensors, zeros out of bounds; bf16, in two dimensions also bytes, in
 * three also fp32.
 * Boxes with rows of 128 bytes lie in shared memory in the 128-byte swizzle, others plain.
 *
 * Encoded on the host, passed by value as __grid_constant__ parameters; nothing is cached, since a
 * map holds its tensor's address. Errors: TL_ERR_ARGUMENT names the tensor's address or row length
 * where they are no multiple of 16 bytes; TL_ERR_UNSUPPORTED without a driver.
 */
#ifndef TL_TENSOR_MAP_H
#define TL_TENSOR_MAP_H

#include <cuda.h>

#include "core/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* [rows, columns] row-major; box of box_rows by box_columns (64: one swizzle span). */
enum tl_status tl_tensor_map_2d(CUtensorMap *map, const struct tl_tensor *tensor, int64_t columns,
                                int64_t rows, int box_columns, int box_rows);

/* [depth, rows, columns] row-major; a box lies in one slice of depth. */
enum tl_status tl_tensor_map_3d(CUtensorMap *map, const struct tl_tensor *tensor, int64_t columns,
                                int64_t rows, int64_t depth, int box_columns, int box_rows);

/* The same of fp32 and a multiple of 32 columns, with panels of 32 columns as a dimension:
 * coordinates {0, panel, row, slice}. A box is box_rows rows of box_panels panels, row after row.
 */
enum tl_status tl_tensor_map_3d_panels(CUtensorMap *map, const struct tl_tensor *tensor,
                                       int64_t columns, int64_t rows, int64_t depth, int box_panels,
                                       int box_rows);

/* Loads and stores that end where a group ends. Over [rows, columns] row-major, coordinates
 * {column, 2^30 - group_rows + row, group_end, 2^30} address row `row` of the group whose last row
 * is before group_end: rows from group_rows on are out of bounds, read as zeros and not written.
 * The bound is the map's, the same for all groups: its second and third dimension share the row
 * stride, and the fourth, of 2^34 elements less one row, makes the sum vanish modulo 2^64
 * (Triton's ragged_tma, read-write form). */
#define TL_RAGGED_ROWS (1 << 30)
enum tl_status tl_tensor_map_ragged(CUtensorMap *map, const struct tl_tensor *tensor,
                                    int64_t columns, int box_columns, int box_rows);

/* The same of bf16 and a multiple of 64 columns, with panels of 64 columns as a fifth dimension:
 * coordinates {0, 2^30 - group_rows + row, group_end, 2^30, panel}. A box is box_panels panels of
 * box_rows rows, one after another, in one instruction. */
enum tl_status tl_tensor_map_ragged_panels(CUtensorMap *map, const struct tl_tensor *tensor,
                                           int64_t columns, int box_rows, int box_panels);

#ifdef __cplusplus
}
#endif
#endif
