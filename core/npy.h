/* Tensors as NumPy .npy files (format 1.0, C order), so that anyone can cross-check in Python.
 *
 * fp64 "<f8", fp32 "<f4", i32 "<i4", u8 "|u1"; NumPy has no bf16, so bf16 is "<u2" holding its
 * bits, and e4m3 and e8m0 are "|u1".
 */
#ifndef TL_NPY_H
#define TL_NPY_H

#include "checksum.h"
#include "tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Writes a contiguous tensor from any device, a piece at a time. TL_ERR_IO names the path and the
 * system's reason; no partial file is left behind. `sum`: of the elements, or NULL. */
enum tl_status tl_npy_write(const struct tl_tensor *tensor, const char *path,
                            struct tl_checksum *sum);

/* Reads into a fresh tensor on `device`. "<u2" becomes bf16. TL_ERR_IO, or TL_ERR_FORMAT naming
 * the path and what is wrong: magic, version, Fortran order, dtype, rank, truncated data. */
enum tl_status tl_npy_read(struct tl_tensor *tensor, struct tl_device *device, const char *path);

/* Reads into a contiguous tensor that is there, of the file's dtype and as many elements, a piece
 * at a time; where it fails the tensor may hold part of the file. `sum` as above. */
enum tl_status tl_npy_read_into(struct tl_tensor *tensor, const char *path,
                                struct tl_checksum *sum);

#ifdef __cplusplus
}
#endif
#endif
