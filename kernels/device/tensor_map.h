/* TMA tensor maps over whole tensors, bf16, 128-byte swizzle, zeros out of bounds.
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

/* Stores that end where a group ends. Over [rows, columns] row-major, coordinates
 * {column, 2^30 - group_rows + row, group_end} address row `row` of the group whose last row is
 * before group_end, and rows from group_rows on are out of bounds. The map has 2^30 rows, its third
 * dimension has the same stride, and its base lies 2^30 rows before the tensor, modulo 2^64. For
 * stores only: loads touch the base (Triton's ragged_tma, write-only form). */
enum tl_status tl_tensor_map_ragged_store(CUtensorMap *map, const struct tl_tensor *tensor,
                                          int64_t columns, int box_columns, int box_rows);

#ifdef __cplusplus
}
#endif
#endif
