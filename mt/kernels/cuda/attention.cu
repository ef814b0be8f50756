// Attention of the rows of a slot to the keys and values of a static memory, for heads of 64 numbers in bfloat16.
// mt/kernels/cuda/attention.py launches it and describes the tensors.
//
// A block computes one head of one slot: K queries that share all keys. A group of 8 lanes handles one key, and each of
// its lanes 8 of the 64 numbers. A block thus reads 32 keys at a time, each once for all queries; keys that the bias
// hides from all queries are not read. Each group has a softmax of its own (Milakov and Gimelshein 2018), and the
// results of all groups are combined at the end.

#include <cuda_bf16.h>
#include <stdint.h>

constexpr int SIZE = 64;               // numbers of a head
constexpr int PART = 8;                // numbers of a lane: 16 bytes
constexpr int LANES = SIZE / PART;     // lanes of a key
constexpr int WARPS = 8;
constexpr int WARP_KEYS = 32 / LANES;  // keys that a warp handles at a time
constexpr float LOG2E = 1.4426950408889634f;

struct Arguments {
    const __nv_bfloat16* query;  // [R, query_stride]: queries, then new keys and values if `append`
    uint4* memory;               // keys and values [B, T, A, 64] with strides; head h has key h and value heads + h
    const __nv_bfloat16* bias;   // [B, K or 1, T] with strides, 0 or -inf
    const int64_t* steps;        // [B] columns of the new keys and values, with stride steps_stride
    __nv_bfloat16* out;          // [R, gridDim.x, 64]
    int tokens, heads, append, query_stride, slot_stride, token_stride, bias_slot, bias_row, steps_stride;
};

__device__ inline void unpack(uint4 packed, float* values) {
    const uint32_t words[4] = {packed.x, packed.y, packed.z, packed.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        values[2 * i] = __uint_as_float(words[i] << 16);
        values[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000u);
    }
}

template <int K>
__device__ void attend(const Arguments& a) {
    const int head = blockIdx.x, slot = blockIdx.y, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int part = lane % LANES;
    __nv_bfloat16* out = a.out + (int64_t(slot) * K * gridDim.x + head) * SIZE;
    const int out_stride = gridDim.x * SIZE;
    if (head == a.heads) {  // the additional head of pre-norm, whose values are ones
        for (int i = threadIdx.x; i < K * SIZE; i += blockDim.x)
            out[i / SIZE * out_stride + i % SIZE] = __float2bfloat16_rn(1.0f);
        return;
    }
    const __nv_bfloat16* rows = a.query + int64_t(slot) * K * a.query_stride;
    uint4* memory = a.memory + int64_t(slot) * a.slot_stride;
    const int key_at = head * LANES, value_at = (a.heads + head) * LANES;  // in vectors of 16 bytes
    if (a.append) {
        if (threadIdx.x < 2 * K * LANES) {  // this head's new keys and values
            const int k = threadIdx.x / (2 * LANES), at = threadIdx.x / LANES % 2 ? value_at : key_at;
            const uint4* made = reinterpret_cast<const uint4*>(rows + k * a.query_stride) + a.heads * LANES;
            const int64_t token = a.steps[int64_t(slot) * a.steps_stride] * K + k;
            memory[token * a.token_stride + at + part] = made[at + part];
        }
        __syncthreads();
    }

    float query[K][PART], sum[K][PART], largest[K], total[K];
#pragma unroll
    for (int k = 0; k < K; k++) {
        unpack(reinterpret_cast<const uint4*>(rows + k * a.query_stride)[key_at + part], query[k]);
        largest[k] = -INFINITY;
        total[k] = 0;
#pragma unroll
        for (int i = 0; i < PART; i++) {
            query[k][i] *= LOG2E / 8;  // 1 / sqrt(64), for exp2
            sum[k][i] = 0;
        }
    }

    const __nv_bfloat16* bias = a.bias + int64_t(slot) * a.bias_slot;
    for (int first = warp * WARP_KEYS; first < a.tokens; first += WARPS * WARP_KEYS) {
        const int token = first + lane / LANES;
        float hidden[K];
        bool seen = false;
#pragma unroll
        for (int k = 0; k < K; k++) {
            hidden[k] = token < a.tokens ? __bfloat162float(bias[k * a.bias_row + token]) : -INFINITY;
            seen |= hidden[k] > -INFINITY;
        }
        uint4 packed_key = {}, packed_value = {};
        if (seen) {
            packed_key = memory[int64_t(token) * a.token_stride + key_at + part];
            packed_value = memory[int64_t(token) * a.token_stride + value_at + part];
        }
        float key[PART], value[PART];
        unpack(packed_key, key);
        unpack(packed_value, value);
#pragma unroll
        for (int k = 0; k < K; k++) {
            float score = 0;
#pragma unroll
            for (int i = 0; i < PART; i++) score += query[k][i] * key[i];
#pragma unroll
            for (int distance = 1; distance < LANES; distance *= 2)
                score += __shfl_xor_sync(0xffffffffu, score, distance);
            if (hidden[k] > -INFINITY) {
                score += hidden[k] * LOG2E;
                const float maximum = fmaxf(largest[k], score);
                const float keep = exp2f(largest[k] - maximum), weight = exp2f(score - maximum);
                largest[k] = maximum;
                total[k] = total[k] * keep + weight;
#pragma unroll
                for (int i = 0; i < PART; i++) sum[k][i] = sum[k][i] * keep + weight * value[i];
            }
        }
    }

    __shared__ float sums[WARPS][K][SIZE], maxima[WARPS][K], totals[WARPS][K];
#pragma unroll
    for (int k = 0; k < K; k++) {
        float maximum = largest[k];
#pragma unroll
        for (int distance = LANES; distance < 32; distance *= 2)
            maximum = fmaxf(maximum, __shfl_xor_sync(0xffffffffu, maximum, distance));
        const float scale = largest[k] > -INFINITY ? exp2f(largest[k] - maximum) : 0.0f;
        total[k] *= scale;
#pragma unroll
        for (int distance = LANES; distance < 32; distance *= 2)
            total[k] += __shfl_xor_sync(0xffffffffu, total[k], distance);
#pragma unroll
        for (int i = 0; i < PART; i++) {
            float part_sum = sum[k][i] * scale;
#pragma unroll
            for (int distance = LANES; distance < 32; distance *= 2)
                part_sum += __shfl_xor_sync(0xffffffffu, part_sum, distance);
            if (lane < LANES) sums[warp][k][part * PART + i] = part_sum;
        }
        if (lane == 0) {
            maxima[warp][k] = maximum;
            totals[warp][k] = total[k];
        }
    }
    __syncthreads();
    for (int index = threadIdx.x; index < K * SIZE; index += blockDim.x) {
        const int k = index / SIZE, i = index % SIZE;
        float maximum = -INFINITY, all = 0, result = 0;
        for (int w = 0; w < WARPS; w++) maximum = fmaxf(maximum, maxima[w][k]);
        for (int w = 0; w < WARPS; w++) {
            const float scale = maxima[w][k] > -INFINITY ? exp2f(maxima[w][k] - maximum) : 0.0f;
            all += totals[w][k] * scale;
            result += sums[w][k][i] * scale;
        }
        out[k * out_stride + i] = __float2bfloat16_rn(all > 0 ? result / all : 0.0f);  // 0 in a slot without a sentence
    }
}

#define KERNEL(K)                                                                                                   \
    extern "C" __global__ void __launch_bounds__(WARPS * 32) attend_##K(                                            \
        const __nv_bfloat16* query, uint4* memory, const __nv_bfloat16* bias, const int64_t* steps,                 \
        __nv_bfloat16* out, int tokens, int heads, int append, int query_stride, int slot_stride, int token_stride, \
        int bias_slot, int bias_row, int steps_stride) {                                                            \
        attend<K>({query, memory, bias, steps, out, tokens, heads, append, query_stride, slot_stride, token_stride, \
                   bias_slot, bias_row, steps_stride});                                                             \
    }

KERNEL(1)
KERNEL(2)
KERNEL(3)
KERNEL(4)
KERNEL(5)
KERNEL(6)
