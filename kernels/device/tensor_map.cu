/* See tensor_map.h. The encoder is a driver function, found through the runtime. */
#include "kernels/device/tensor_map.h"

#include <cuda_runtime.h>

typedef CUresult (*encode_fn)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *,
                              const cuuint64_t *, const cuuint64_t *, const cuuint32_t *,
                              const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle,
                              CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

static enum tl_status find_encoder(encode_fn *out)
{
    static encode_fn found;
    if (!found) {
        void *symbol = NULL;
        cudaDriverEntryPointQueryResult result;
        cudaError_t error = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &symbol,
                                                             12000, cudaEnableDefault, &result);
        cudaGetLastError(); /* else the next launch would report it again */
        if (error != cudaSuccess || result != cudaDriverEntryPointSuccess)
            return TL_FAIL(TL_ERR_UNSUPPORTED,
                           "the driver has no cuTensorMapEncodeTiled: %s; TMA "
                           "needs CUDA 12 or later",
                           cudaGetErrorString(error));
        found = (encode_fn)symbol;
    }
    *out = found;
    return TL_OK;
}

static enum tl_status encode(CUtensorMap *map, const struct tl_tensor *tensor, void *base, int rank,
                             const cuuint64_t *size, const cuuint64_t *stride_bytes,
                             const cuuint32_t *box)
{
    static const cuuint32_t ones[5] = {1, 1, 1, 1, 1};
    CUtensorMapDataType type = tensor->dtype == TL_FP32   ? CU_TENSOR_MAP_DATA_TYPE_FLOAT32
                               : tensor->dtype == TL_BF16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
                                                          : CU_TENSOR_MAP_DATA_TYPE_UINT8;
    bool one_span = box[0] * tl_dtype_size(tensor->dtype) == 128;
    encode_fn encoder = NULL;
    TL_TRY(find_encoder(&encoder));
    if ((uintptr_t)tensor->data % 16 != 0)
        return TL_FAIL(TL_ERR_ARGUMENT, "TMA needs 16-byte aligned tensors; this one lies at %p",
                       tensor->data);
    for (int i = 0; i < rank - 1; i++)
        if (stride_bytes[i] % 16 != 0)
            return TL_FAIL(TL_ERR_ARGUMENT, "TMA needs rows of a multiple of 16 bytes, not %llu",
                           (unsigned long long)stride_bytes[i]);
    /* Promotion to the 128 bytes of a swizzled row: with 256, loads of weights that are read once
     * or twice came up to 6 % later (128 experts on an H200). */
    CUresult result =
        encoder(map, type, (cuuint32_t)rank, base, size, stride_bytes, box, ones,
                CU_TENSOR_MAP_INTERLEAVE_NONE,
                one_span ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_NONE,
                CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (result != CUDA_SUCCESS) {
        char text[96];
        return TL_FAIL(TL_ERR_DEVICE, "cuTensorMapEncodeTiled refused %s: CUDA error %d",
                       tl_tensor_describe(tensor, text, sizeof text), (int)result);
    }
    return TL_OK;
}

extern "C" enum tl_status tl_tensor_map_2d(CUtensorMap *map, const struct tl_tensor *tensor,
                                           int64_t columns, int64_t rows, int box_columns,
                                           int box_rows)
{
    cuuint64_t size[] = {(cuuint64_t)columns, (cuuint64_t)rows};
    cuuint64_t stride[] = {(cuuint64_t)columns * tl_dtype_size(tensor->dtype)};
    cuuint32_t box[] = {(cuuint32_t)box_columns, (cuuint32_t)box_rows};
    return encode(map, tensor, tensor->data, 2, size, stride, box);
}

extern "C" enum tl_status tl_tensor_map_3d(CUtensorMap *map, const struct tl_tensor *tensor,
                                           int64_t columns, int64_t rows, int64_t depth,
                                           int box_columns, int box_rows)
{
    cuuint64_t size[] = {(cuuint64_t)columns, (cuuint64_t)rows, (cuuint64_t)depth};
    cuuint64_t row_bytes = (cuuint64_t)columns * tl_dtype_size(tensor->dtype);
    cuuint64_t stride[] = {row_bytes, row_bytes * (cuuint64_t)rows};
    cuuint32_t box[] = {(cuuint32_t)box_columns, (cuuint32_t)box_rows, 1};
    return encode(map, tensor, tensor->data, 3, size, stride, box);
}

extern "C" enum tl_status tl_tensor_map_3d_panels(CUtensorMap *map, const struct tl_tensor *tensor,
                                                  int64_t columns, int64_t rows, int64_t depth,
                                                  int box_panels, int box_rows)
{
    cuuint64_t row_bytes = (cuuint64_t)columns * 4;
    cuuint64_t size[] = {32, (cuuint64_t)columns / 32, (cuuint64_t)rows, (cuuint64_t)depth};
    cuuint64_t stride[] = {128, row_bytes, row_bytes * (cuuint64_t)rows};
    cuuint32_t box[] = {32, (cuuint32_t)box_panels, (cuuint32_t)box_rows, 1};
    return encode(map, tensor, tensor->data, 4, size, stride, box);
}

extern "C" enum tl_status tl_tensor_map_ragged(CUtensorMap *map, const struct tl_tensor *tensor,
                                               int64_t columns, int box_columns, int box_rows)
{
    cuuint64_t row_bytes = (cuuint64_t)columns * 2;
    cuuint64_t size[] = {(cuuint64_t)columns, TL_RAGGED_ROWS, 0x7fff0000, 0x7fff0000};
    cuuint64_t stride[] = {row_bytes, row_bytes, ((cuuint64_t)1 << 34) * 2 - row_bytes};
    cuuint32_t box[] = {(cuuint32_t)box_columns, (cuuint32_t)box_rows, 1, 1};
    return encode(map, tensor, tensor->data, 4, size, stride, box);
}

extern "C" enum tl_status tl_tensor_map_ragged_panels(CUtensorMap *map,
                                                      const struct tl_tensor *tensor,
                                                      int64_t columns, int box_rows, int box_panels)
{
    cuuint64_t row_bytes = (cuuint64_t)columns * 2;
    cuuint64_t size[] = {64, TL_RAGGED_ROWS, 0x7fff0000, 0x7fff0000, (cuuint64_t)columns / 64};
    cuuint64_t stride[] = {row_bytes, row_bytes, ((cuuint64_t)1 << 34) * 2 - row_bytes, 128};
    cuuint32_t box[] = {64, (cuuint32_t)box_rows, 1, 1, (cuuint32_t)box_panels};
    return encode(map, tensor, tensor->data, 5, size, stride, box);
}
