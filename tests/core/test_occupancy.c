#include "check.h"
#include "core/occupancy.h"

#include <limits.h>

#if TL_CUDA && __has_include(<cuda_occupancy.h>)
#define HAVE_ORACLE 1
#include <cuda_occupancy.h>
#else
#define HAVE_ORACLE 0
#endif

enum { SMS = 132 };

static struct tl_occupancy compute(int threads, int registers, int64_t shared_bytes)
{
    struct tl_occupancy result;
    const struct tl_launch_shape shape = {
        .blocks = SMS, .threads = threads, .registers = registers, .shared_bytes = shared_bytes};
    assert_ok(tl_occupancy_compute(&result, 90, SMS, &shape));
    return result;
}

static void each_resource_limits(void **state)
{
    (void)state;
    struct tl_occupancy o = compute(256, 128, 0);
    assert_int_equal(o.blocks_per_multiprocessor, 2); /* 65536 / (128 * 256) */
    assert_string_equal(o.limiter, "registers");
    assert_true(o.percent == 25);
    o = compute(128, 32, 100 * 1024);
    assert_int_equal(o.blocks_per_multiprocessor, 2);
    assert_string_equal(o.limiter, "shared memory");
    o = compute(1024, 32, 0);
    assert_int_equal(o.blocks_per_multiprocessor, 2);
    assert_string_equal(o.limiter, "registers, threads");
    assert_true(o.percent == 100);
    o = compute(512, 16, 0);
    assert_string_equal(o.limiter, "threads");
    o = compute(32, 16, 0);
    assert_int_equal(o.blocks_per_multiprocessor, 32);
    assert_string_equal(o.limiter, "blocks");
    assert_true(o.percent == 50);
    /* 227 KiB and the 1 KiB that is the system's fill a multiprocessor; one byte more is none. */
    assert_int_equal(compute(128, 32, 227 * 1024).blocks_per_multiprocessor, 1);
    o = compute(128, 32, 227 * 1024 + 1);
    assert_int_equal(o.blocks_per_multiprocessor, 0);
    assert_string_equal(o.limiter, "shared memory");
    assert_true(o.waves == 0);
    assert_int_equal(compute(1025, 16, 0).blocks_per_multiprocessor, 0);
    assert_int_equal(compute(384, 0, 0).limit[TL_LIMIT_REGISTERS], INT_MAX);
}

static void barriers_and_clusters(void **state)
{
    (void)state;
    struct tl_occupancy o;
    struct tl_launch_shape shape = {.blocks = 264, .threads = 128, .registers = 32, .barriers = 16};
    assert_ok(tl_occupancy_compute(&o, 90, SMS, &shape));
    assert_int_equal(o.blocks_per_multiprocessor, 4);
    assert_string_equal(o.limiter, "barriers");
    assert_true(o.waves == 0.5);
    shape.barriers = 0;
    shape.shared_bytes = 200 * 1024;
    assert_ok(tl_occupancy_compute(&o, 90, SMS, &shape));
    assert_true(o.waves == 2);
    /* Of 132 multiprocessors, 120 can be joined in clusters of 4. */
    shape.cluster = 4;
    shape.max_active_clusters = 30;
    assert_ok(tl_occupancy_compute(&o, 90, SMS, &shape));
    assert_true(o.waves == 264.0 / 120);
}

static void refusals(void **state)
{
    (void)state;
    struct tl_occupancy o;
    struct tl_launch_shape shape = {.blocks = 1, .threads = 128};
    assert_fails(TL_ERR_UNSUPPORTED, "arch 100", tl_occupancy_compute(&o, 100, SMS, &shape));
    assert_fails(TL_ERR_ARGUMENT, "got 1, 128, 0", tl_occupancy_compute(&o, 90, 0, &shape));
    shape.threads = 0;
    assert_fails(TL_ERR_ARGUMENT, "got 1, 0, 132", tl_occupancy_compute(&o, 90, SMS, &shape));
    shape.threads = 32;
    shape.registers = -1;
    assert_fails(TL_ERR_ARGUMENT, "start at 0", tl_occupancy_compute(&o, 90, SMS, &shape));
}

#if HAVE_ORACLE
/* NVIDIA's calculator with an H200's properties. */
static struct cudaOccResult oracle(int threads, int registers, int64_t shared_bytes, int barriers)
{
    struct cudaOccDeviceProp device = {
        .computeMajor = 9,
        .maxThreadsPerBlock = 1024,
        .maxThreadsPerMultiprocessor = 2048,
        .regsPerBlock = 65536,
        .regsPerMultiprocessor = 65536,
        .warpSize = 32,
        .sharedMemPerBlock = 48 * 1024,
        .sharedMemPerMultiprocessor = 228 * 1024,
        .numSms = SMS,
        .sharedMemPerBlockOptin = 227 * 1024,
        .reservedSharedMemPerBlock = 1024,
    };
    struct cudaOccFuncAttributes function = {
        .maxThreadsPerBlock = 1024,
        .numRegs = registers,
        .shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN,
        .maxDynamicSharedSizeBytes = 227 * 1024,
        .numBlockBarriers = barriers,
    };
    struct cudaOccDeviceState none = {.carveoutConfig = SHAREDMEM_CARVEOUT_DEFAULT};
    struct cudaOccResult result;
    assert_int_equal(cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &function, &none,
                                                             threads, (size_t)shared_bytes),
                     CUDA_OCC_SUCCESS);
    return result;
}

static void compare(int threads, int registers, int64_t shared_bytes, int barriers)
{
    struct cudaOccResult wanted = oracle(threads, registers, shared_bytes, barriers);
    struct tl_occupancy got;
    const struct tl_launch_shape shape = {.blocks = 1,
                                          .threads = threads,
                                          .registers = registers,
                                          .shared_bytes = shared_bytes,
                                          .barriers = barriers};
    assert_ok(tl_occupancy_compute(&got, 90, SMS, &shape));
    if (got.blocks_per_multiprocessor != wanted.activeBlocksPerMultiprocessor ||
        got.limit[TL_LIMIT_REGISTERS] != wanted.blockLimitRegs ||
        got.limit[TL_LIMIT_SHARED_MEMORY] != wanted.blockLimitSharedMem ||
        got.limit[TL_LIMIT_THREADS] != wanted.blockLimitWarps ||
        got.limit[TL_LIMIT_BARRIERS] != wanted.blockLimitBarriers)
        fail_msg("%d threads, %d registers, %lld bytes, %d barriers: %d blocks (registers %d, "
                 "shared %d, threads %d), NVIDIA says %d (%d, %d, %d)",
                 threads, registers, (long long)shared_bytes, barriers,
                 got.blocks_per_multiprocessor, got.limit[TL_LIMIT_REGISTERS],
                 got.limit[TL_LIMIT_SHARED_MEMORY], got.limit[TL_LIMIT_THREADS],
                 wanted.activeBlocksPerMultiprocessor, wanted.blockLimitRegs,
                 wanted.blockLimitSharedMem, wanted.blockLimitWarps);
}

static void agrees_with_nvidias_calculator(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 1024; threads += threads % 32 == 0 ? 1 : 31)
        for (int registers = 1; registers <= 256; registers++)
            compare(threads, registers, 0, 1);
    for (int64_t shared = 0; shared <= 228 * 1024; shared += 61)
        for (int threads = 32; threads <= 1024; threads *= 2)
            compare(threads, 40, shared, 1);
    for (int barriers = 1; barriers <= 16; barriers++)
        compare(64, 24, 1024, barriers);
}
#else
static void agrees_with_nvidias_calculator(void **state)
{
    (void)state;
    print_message("# no cuda_occupancy.h in this build\n");
    skip();
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_resource_limits),
        cmocka_unit_test(barriers_and_clusters),
        cmocka_unit_test(refusals),
        cmocka_unit_test(agrees_with_nvidias_calculator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
