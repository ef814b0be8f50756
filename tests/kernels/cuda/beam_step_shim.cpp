// Runs the kernel of beam_step.cu on a CPU: a thread for each thread of a block, one block after the other.
#include <barrier>
#include <cmath>
#include <thread>
#include <vector>

#define __device__ static
#define __global__
#define __shared__ static

struct Index { int x; };
static thread_local Index threadIdx, blockIdx;
static Index blockDim{THREADS};
static std::barrier barrier(THREADS);
static void __syncthreads() { barrier.arrive_and_wait(); }

#include "kernel.cu"

extern "C" void run(int slots, const float* logits, float* best, float* pool, long long* newest, long long* progress,
                    const float* limits, int limits_stride, const long long* nth, int nth_stride,
                    float* totals, int totals_stride, long long* continuations, int continuations_stride, int K, int V,
                    int pad, int unk, int bos, int eos) {
    for (int slot = 0; slot < slots; slot++) {
        std::vector<std::thread> threads;
        for (int i = 0; i < THREADS; i++)
            threads.emplace_back([=] {
                threadIdx = {i}, blockIdx = {slot};
                beam_step(logits, best, pool, newest, progress, limits, limits_stride, nth, nth_stride, totals,
                          totals_stride, continuations, continuations_stride, K, V, pad, unk, bos, eos);
            });
        for (auto& thread : threads) thread.join();
    }
}
