// One step of beam search over the logits of all rows, equal to StaticBeam.advance without prefixes and
// n-gram constraints. Two kernels use the whole GPU for any number of slots. mt/kernels/cuda/beam_step.py launches them and describes the tensors.
//
// beam_rows: grid (rows, parts). A block reads a part of the logits of one row once, and finds the maximum of the part,
// the sum of exp(z - maximum) and the K best tokens.
// beam_slots: grid (slots). A block merges the parts of its K rows and updates the tables of its slot.

#include <stdint.h>

constexpr int THREADS = 256;
constexpr int NOWHERE = 0x7fffffff;

struct Candidate {
    float score;
    int place;
};

template <int K>
struct Part {
    float maximum, sum;
    Candidate best[K];
};

struct Special {
    int pad, unk, bos, eos;
};

// NaN is better than every number, so that a sentence with a NaN ends. Of equal scores, the lower place is better.
__device__ inline bool better(Candidate a, Candidate b) {
    const bool a_nan = isnan(a.score), b_nan = isnan(b.score);
    if (a_nan != b_nan) return a_nan;
    return a.score > b.score || ((a_nan || a.score == b.score) && a.place < b.place);
}

// Insert into a list that is sorted, best first. With known indices, the list stays in registers.
template <int K>
__device__ inline void insert(Candidate (&list)[K], Candidate candidate) {
    if (!better(candidate, list[K - 1])) return;
    list[K - 1] = candidate;
#pragma unroll
    for (int i = K - 1; i > 0; i--)
        if (better(list[i], list[i - 1])) {
            const Candidate lower = list[i - 1];
            list[i - 1] = list[i];
            list[i] = lower;
        }
}

// exp(a - b), and 0 if a is minus infinity.
__device__ inline float exp_difference(float a, float b) { return a == -INFINITY ? 0.0f : expf(a - b); }

__device__ inline void add_sum(float& maximum, float& sum, float other_maximum, float other_sum) {
    const float larger = other_maximum > maximum ? other_maximum : maximum;
    sum = sum * exp_difference(maximum, larger) + other_sum * exp_difference(other_maximum, larger);
    maximum = larger;
}

template <int K>
__device__ void beam_rows(const float* logits, Part<K>* parts, int vocabulary, Special special) {
    __shared__ Part<K> shared[THREADS];
    const int thread = threadIdx.x;
    const float* row = logits + int64_t(blockIdx.x) * vocabulary;
    const int share = ((vocabulary + gridDim.y - 1) / gridDim.y + 3) / 4 * 4;
    const int begin = blockIdx.y * share, end = min(begin + share, vocabulary);
    const bool aligned = vocabulary % 4 == 0;  // then every row begins at a multiple of 16 bytes
    float maximum = -INFINITY, sum = 0;
    bool nan = false;
    Candidate best[K];
#pragma unroll
    for (int k = 0; k < K; k++) best[k] = {-INFINITY, NOWHERE};
    for (int first = begin + 4 * thread; first < end; first += 4 * THREADS) {
        float z[4];
        if (aligned) {
            const float4 four = *reinterpret_cast<const float4*>(row + first);
            z[0] = four.x, z[1] = four.y, z[2] = four.z, z[3] = four.w;
        } else {
#pragma unroll
            for (int i = 0; i < 4; i++) z[i] = first + i < end ? row[first + i] : -INFINITY;
        }
        float larger = maximum;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            larger = z[i] > larger ? z[i] : larger;
            nan |= isnan(z[i]);
        }
        sum *= exp_difference(maximum, larger);
        maximum = larger;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            sum += exp_difference(z[i], maximum);
            const int token = first + i;
            if (token < end && token != special.pad && token != special.unk && token != special.bos &&
                token != special.eos)
                insert(best, {z[i], token});
        }
    }
    Part<K>& own = shared[thread];
    own.maximum = maximum;
    own.sum = sum = nan ? NAN : sum;
#pragma unroll
    for (int k = 0; k < K; k++) own.best[k] = best[k];
    for (int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (thread < half) {
            const Part<K>& other = shared[thread + half];
            add_sum(maximum, sum, other.maximum, other.sum);
            own.maximum = maximum;
            own.sum = sum;
#pragma unroll
            for (int k = 0; k < K; k++) insert(best, other.best[k]);
#pragma unroll
            for (int k = 0; k < K; k++) own.best[k] = best[k];
        }
    }
    if (thread == 0) parts[int64_t(blockIdx.x) * gridDim.y + blockIdx.y] = own;
}

// Tables of StaticBeam. The strides are those of a slot, in elements.
struct Tables {
    float* best;             // [B, 2K]
    float* pool;             // [B, K]
    int64_t* newest;         // [B, K]
    int64_t* progress;       // [B, 2]
    const float* limits;     // [B, T + 1, 4]
    const int64_t* nth;      // [B, 1]
    const float* margin;     // [B, 1]
    const int64_t* first_end;  // [B] the first step at which EOS is allowed
    float* totals;           // [B, T + 1, 2K]
    int64_t* continuations;  // [B, T + 1, K]
    int limits_stride, nth_stride, margin_stride, first_end_stride, totals_stride, continuations_stride;
};

template <int K>
__device__ void beam_slots(const float* logits, const Part<K>* parts, Tables t, int count, int vocabulary, int eos) {
    __shared__ float maxima[K], log_sums[K], alive[K], ends[K], old_pool[K], limit[4];
    __shared__ Candidate reduced[THREADS], kept[K];
    const int slot = blockIdx.x, thread = threadIdx.x;
    const int64_t first_row = int64_t(slot) * K;
    float* best = t.best + 2 * first_row;
    const int64_t step = t.progress[2 * slot], running = t.progress[2 * slot + 1];
    if (thread < K) {
        const Part<K>* row = parts + (first_row + thread) * count;
        float maximum = -INFINITY, sum = 0;
        for (int i = 0; i < count; i++) add_sum(maximum, sum, row[i].maximum, row[i].sum);
        alive[thread] = best[thread];
        old_pool[thread] = t.pool[first_row + thread];
        maxima[thread] = maximum;
        log_sums[thread] = logf(sum);
        // ((z - maximum) - log sum) + total, in the order of log_softmax and the addition
        const float end = logits[(first_row + thread) * vocabulary + eos] - maximum - log_sums[thread] + alive[thread];
        ends[thread] = step < t.first_end[int64_t(slot) * t.first_end_stride] ? -INFINITY : end;
    }
    if (thread < 4) limit[thread] = t.limits[int64_t(slot) * t.limits_stride + step * 4 + thread];
    __syncthreads();
    for (int round = 0; round < K; round++) {  // the best candidate that was not taken in an earlier round
        Candidate own = {-INFINITY, NOWHERE};
        for (int index = thread; index < K * count * K; index += THREADS) {
            const int beam = index / (count * K), rest = index % (count * K);
            const Candidate token = parts[(first_row + beam) * count + rest / K].best[rest % K];
            if (token.place == NOWHERE) continue;
            const float score = token.score - maxima[beam] - log_sums[beam] + alive[beam];
            const Candidate candidate = {score, beam * vocabulary + token.place};
            bool taken = false;
            for (int i = 0; i < round; i++) taken |= kept[i].place == candidate.place;
            if (!taken && better(candidate, own)) own = candidate;
        }
        reduced[thread] = own;
        for (int half = THREADS / 2; half > 0; half /= 2) {
            __syncthreads();
            if (thread < half && better(reduced[thread + half], reduced[thread]))
                reduced[thread] = reduced[thread + half];
        }
        __syncthreads();
        if (thread == 0) kept[round] = reduced[0];
        __syncthreads();
    }
    if (thread < K) {
        const Candidate winner = kept[thread];
        const bool none = winner.place == NOWHERE;
        const int64_t row = first_row + (none ? 0 : winner.place / vocabulary);
        const int64_t continuation = row << 32 | (none ? 0 : winner.place % vocabulary);
        float highest = kept[0].score;
        for (int k = 0; k < K; k++) highest = fmaxf(highest, ends[k]);
        const float lowest = highest - t.margin[int64_t(slot) * t.margin_stride];
        best[thread] = winner.score < lowest ? -INFINITY : winner.score;
        best[K + thread] = ends[thread];
        t.newest[first_row + thread] = continuation;
        t.continuations[int64_t(slot) * t.continuations_stride + step * K + thread] = continuation;
        float* total = t.totals + int64_t(slot) * t.totals_stride + step * 2 * K;
        total[thread] = winner.score;
        total[K + thread] = ends[thread];
    }
    if (thread > 0) return;
    Candidate all[K], finished[K];
#pragma unroll
    for (int k = 0; k < K; k++) all[k] = finished[k] = {-INFINITY, NOWHERE};
#pragma unroll
    for (int k = 0; k < K; k++) {
        insert(all, {kept[k].score, k});
        insert(all, {ends[k], K + k});
    }
#pragma unroll
    for (int k = 0; k < K; k++) {  // an end counts if it is among the K best of this step
        insert(finished, {old_pool[k], k});
        insert(finished, {ends[k] < all[K - 1].score ? -INFINITY : ends[k] / limit[1], K + k});
    }
    const int nth = int(t.nth[int64_t(slot) * t.nth_stride]);
    float worst = -INFINITY;
#pragma unroll
    for (int k = 0; k < K; k++) {
        t.pool[first_row + k] = finished[k].score;
        if (k == nth) worst = finished[k].score;
    }
    const float divisor = finished[K - 1].score == -INFINITY ? limit[0] : limit[2];
    t.progress[2 * slot] = step + running;
    t.progress[2 * slot + 1] = running && kept[0].score / divisor > worst;
}

#define KERNELS(K)                                                                                                  \
    extern "C" __global__ void __launch_bounds__(THREADS) beam_rows_##K(                                            \
        const float* logits, Part<K>* parts, int vocabulary, int pad, int unk, int bos, int eos) {                  \
        beam_rows<K>(logits, parts, vocabulary, {pad, unk, bos, eos});                                              \
    }                                                                                                               \
    extern "C" __global__ void __launch_bounds__(THREADS) beam_slots_##K(                                           \
        const float* logits, const Part<K>* parts, float* best, float* pool, int64_t* newest, int64_t* progress,    \
        const float* limits, const int64_t* nth, const float* margin, const int64_t* first_end, float* totals,      \
        int64_t* continuations, int limits_stride, int nth_stride, int margin_stride, int first_end_stride,         \
        int totals_stride, int continuations_stride, int count, int vocabulary, int eos) {                          \
        beam_slots<K>(logits, parts,                                                                                \
                      {best, pool, newest, progress, limits, nth, margin, first_end, totals, continuations,         \
                       limits_stride, nth_stride, margin_stride, first_end_stride, totals_stride,                   \
                       continuations_stride},                                                                       \
                      count, vocabulary, eos);                                                                      \
    }

KERNELS(2)
KERNELS(3)
KERNELS(4)
KERNELS(5)
KERNELS(6)
