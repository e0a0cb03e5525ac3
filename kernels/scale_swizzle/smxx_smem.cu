/* scale_swizzle/smxx_smem: K groups, transposed in shared memory without bank conflicts.
 *
 * A block takes 128 rows by 128 bytes of the input, aligned whatever the groups are: coalesced
 * 16-byte loads, and word c of row r goes to word c ^ (r % 32) of its row in shared memory. So the
 * 32 rows of which a warp reads a word lie in different banks, and so do the words of the four rows
 * by eight vectors that it writes at a time. Then a warp reads and stores whole tiles.
 */
#include <cuda_runtime.h>

#include "kernels/device/load.cuh"
#include "kernels/scale_swizzle/words.cuh"

enum {
    MOST_THREADS = 512,
    WORDS = 32, /* of a row in a block */
    SPAN = 4 * WORDS,
    VECTORS = SPAN / 16,
};

extern __shared__ int group_table[];

struct block_words {
    uint32_t word[TL_SCALE_TILE_ROWS][WORDS];
    uint32_t follow[TL_SCALE_TILE_ROWS]; /* the word after a row's last: tiles may reach into it */
};

/* Where ALIGNED, rows hold whole vectors at aligned addresses. */
template <bool ALIGNED>
static __device__ __forceinline__ void read_rows(const tl_scale_problem &p, block_words &shared,
                                                 int row, int column)
{
    int thread = (int)(threadIdx.y * 32 + threadIdx.x), threads = (int)blockDim.y * 32;
    for (int i = thread; i < TL_SCALE_TILE_ROWS * VECTORS; i += threads) {
        int r = i / VECTORS, vector = i % VECTORS, at = column + vector * 16;
        uint32_t value[4] = {};
        if (ALIGNED)
            tl_load_constant<0>(value, p.scales + (int64_t)(row + r) * p.columns + at,
                                row + r < p.rows && at < p.columns);
#pragma unroll
        for (int w = 0; w < 4; w++) {
            if (!ALIGNED)
                value[w] = tl_scale_word(p, row + r, at + 4 * w, 4);
            shared.word[r][(vector * 4 + w) ^ r % 32] = value[w];
        }
    }
    for (int r = thread; r < TL_SCALE_TILE_ROWS; r += threads)
        shared.follow[r] = tl_scale_word(p, row + r, column + SPAN, 4);
}

/* Tile slot `slot` of the block, whose first column is `shift` bytes into its word. */
static __device__ __forceinline__ void write_tile(const block_words &shared, uint8_t *tile,
                                                  int slot, int shift, int left)
{
    int run = (int)threadIdx.x;
    uint32_t value[TL_SCALE_RUN_ROWS], mask = left >= 4 ? ~0u : ~(~0u << 8 * left);
#pragma unroll
    for (int q = 0; q < TL_SCALE_RUN_ROWS; q++) {
        int r = q * TL_SCALE_RUNS + run;
        uint32_t low = shared.word[r][slot ^ run], high = 0;
        if (shift != 0)
            high = slot < WORDS - 1 ? shared.word[r][(slot + 1) ^ run] : shared.follow[r];
        value[q] = __funnelshift_r(low, high, 8 * shift) & mask;
    }
    *(uint4 *)(tile + run * TL_SCALE_RUN_BYTES) =
        make_uint4(value[0], value[1], value[2], value[3]);
}

template <bool ALIGNED, class Groups>
static __global__ void __launch_bounds__(MOST_THREADS)
    smem_kernel(const __grid_constant__ tl_scale_problem p, tl_fault_port fault)
{
    __shared__ block_words shared;
    int row_tile = tl_scale_block_down(), column = (int)blockIdx.x * SPAN;
    Groups groups;
    read_rows<ALIGNED>(p, shared, row_tile * TL_SCALE_TILE_ROWS, column);
    bool bad = groups.open(p.ends, p.num_groups, p.columns, group_table, fault);
    __syncthreads();
    if (bad || row_tile >= p.row_tiles)
        return;
    for (groups.seek(column); groups.group < p.num_groups && groups.begin < column + SPAN;
         groups.next()) {
        int shift = groups.begin % 4, tiles = groups.units();
        int64_t before = (int64_t)groups.units_before * p.row_tiles + (int64_t)row_tile * tiles;
        for (int slot = (int)threadIdx.y; slot < WORDS; slot += (int)blockDim.y) {
            int first = column + 4 * slot + shift - groups.begin; /* a multiple of 4 */
            int left = groups.end - groups.begin - first;
            if (first >= 0 && left > 0)
                write_tile(shared, p.blocked + (before + first / 4) * TL_SCALE_TILE_BYTES, slot,
                           shift, left);
        }
    }
}

static enum tl_status launch(const struct tl_plan *plan, const struct tl_args *args,
                             struct tl_stream *stream)
{
    tl_scale_problem p = tl_scale_problem_of(plan, args);
    bool many = p.num_groups > TL_FEW_GROUPS;
    bool aligned = (uintptr_t)p.scales % 16 == 0 && p.columns % 16 == 0;
    unsigned warps = (unsigned)plan->tunable[0] / 32;
    size_t table = many ? tl_scale_many::shared_bytes(p.num_groups) : 0;
    size_t shared = tl_scale_held_bytes(plan) + table;
    void (*kernel)(tl_scale_problem, tl_fault_port) =
        many ? (aligned ? smem_kernel<true, tl_scale_many> : smem_kernel<false, tl_scale_many>)
             : (aligned ? smem_kernel<true, tl_scale_few> : smem_kernel<false, tl_scale_few>);
    if (tl_scale_is_empty(p))
        return TL_OK;
    TL_TRY(tl_scale_check_aligned(plan, p.blocked));
    TL_TRY(tl_scale_allow_shared(plan, (const void *)kernel, shared));
    kernel<<<tl_scale_grid((p.columns + SPAN - 1) / SPAN, p.row_tiles), dim3(32, warps), shared,
             tl_cuda_stream(stream)>>>(p, tl_cuda_fault(plan));
    return TL_CUDA_LAUNCHED(plan, "smem_kernel");
}

static const int block_threads[] = {64, 128, 256, 512, 0};

extern "C" const struct tl_kernel tl_kernel_scale_swizzle_smxx_smem = {
    .operation = "scale_swizzle",
    .variant = "smxx_smem",
    .arch = "smxx",
    .summary = "K groups: 128 rows by 128 bytes through shared memory, words placed by XOR.",
    .tunables = {{"block_threads", 256, block_threads}, TL_SCALE_HELD_SHARED},
    .legal = tl_scale_legal_k_groups,
    .launch = launch,
};
