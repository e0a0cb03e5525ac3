/* The two kernels that a measurement needs beside what it measures; see cuda_probe.c. */
#include "core/clock.h"
#include "core/cuda_probe.h"

#include <cuda_runtime.h>

static __device__ __forceinline__ unsigned long long global_time_ns()
{
    unsigned long long time;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time)::"memory");
    return time;
}

/* One thread a block. The time advances in steps, of up to a microsecond on some GPUs; noting the
 * cycles at the edge of a step makes both ends of a span exact. */
static __global__ void __launch_bounds__(32)
note_clock(struct tl_clock_note *notes, int num_sms, unsigned long long sequence)
{
    unsigned sm;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    unsigned long long before = global_time_ns(), time = before;
    for (int i = 0; i < 4096 && time == before; i++)
        time = global_time_ns();
    unsigned long long cycles = (unsigned long long)clock64();
    if (sm < (unsigned)num_sms) {
        notes[sm].cycles = cycles;
        notes[sm].time_ns = time;
        notes[sm].sequence = sequence;
    }
}

/* Reads `count` vectors through L2. The sum is written where it has a value that never comes, so
 * that the reads are not optimised away. */
static __global__ void __launch_bounds__(256)
read_all(const uint4 *data, size_t count, unsigned *never)
{
    unsigned sum = 0;
    size_t step = (size_t)gridDim.x * blockDim.x;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
        uint4 value = __ldcg(data + i);
        sum |= value.x | value.y | value.z | value.w;
    }
    if (sum & 0x80000000u)
        *never = sum;
}

extern "C" int tl_cuda_probe_note(struct tl_clock_note *notes, int num_sms, uint64_t sequence,
                                  void *stream)
{
    note_clock<<<num_sms, 1, 0, (cudaStream_t)stream>>>(notes, num_sms, sequence);
    return (int)cudaGetLastError();
}

extern "C" int tl_cuda_probe_read(void *data, size_t bytes, int num_sms, void *stream)
{
    read_all<<<num_sms * 8, 256, 0, (cudaStream_t)stream>>>((const uint4 *)data,
                                                            bytes / sizeof(uint4),
                                                            (unsigned *)data);
    return (int)cudaGetLastError();
}
