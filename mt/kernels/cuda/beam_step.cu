// One step of beam search, one block of threads per slot: log-softmax, top-k and bookkeeping of StaticBeam.advance
// without constraints. Not yet run on a GPU: tests compile this file as C++. Shapes: K beams, V logits a row.
//
// mt/kernels/cuda/fused.py defines THREADS and MAX_BEAMS.

#ifdef __CUDACC_RTC__
#define NONE (__int_as_float(0xff800000))  // minus infinity
#else
#define NONE (-INFINITY)
#endif

struct Candidate {
    float total;
    int place;  // beam * V + token
};

// NaN counts as highest, as in torch. Of equal totals, the one with the lower place is better.
__device__ bool better(Candidate a, Candidate b) {
    const bool a_nan = a.total != a.total, b_nan = b.total != b.total;
    if (a_nan != b_nan) return a_nan;
    return a.total > b.total || ((a_nan || a.total == b.total) && a.place < b.place);
}

__device__ void insert(Candidate* best, int count, Candidate candidate) {
    if (!better(candidate, best[count - 1])) return;
    int i = count - 1;
    for (; i > 0 && better(candidate, best[i - 1]); i--) best[i] = best[i - 1];
    best[i] = candidate;
}

// Return the sum (or the largest) of one number of each thread. `shared` has one float a thread.
__device__ float reduce(float value, float* shared, bool sum) {
    shared[threadIdx.x] = value;
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) {
            const float a = shared[threadIdx.x], b = shared[threadIdx.x + half];
            shared[threadIdx.x] = sum ? a + b : (a > b || a != a ? a : b);
        }
    }
    __syncthreads();
    const float result = shared[0];
    __syncthreads();
    return result;
}

// Strides of tables are in elements of the table. blockDim.x is a power of 2. At most 16 beams.
extern "C" __global__ void beam_step(
    const float* logits, float* best, float* pool, long long* newest, long long* progress,
    const float* limits, int limits_stride, const long long* nth, int nth_stride, float* totals, int totals_stride,
    long long* continuations, int continuations_stride, int K, int V, int pad, int unk, int bos, int eos) {
    __shared__ float shared[THREADS];
    __shared__ Candidate kept[THREADS * MAX_BEAMS];
    const int slot = blockIdx.x, thread = threadIdx.x, threads = blockDim.x;
    float* alive = best + (long long)slot * 2 * K;
    float* ends = alive + K;
    Candidate* own = kept + thread * K;
    for (int k = 0; k < K; k++) own[k] = {NONE, 0x7fffffff};
    for (int k = 0; k < K; k++) {
        const float* z = logits + ((long long)slot * K + k) * V;
        float largest = NONE;
        for (int i = thread; i < V; i += threads) largest = z[i] > largest || z[i] != z[i] ? z[i] : largest;
        largest = reduce(largest, shared, false);
        float sum = 0;
        for (int i = thread; i < V; i += threads) sum += expf(z[i] - largest);
        const float log_sum = logf(reduce(sum, shared, true));
        for (int i = thread; i < V; i += threads)
            if (i != pad && i != unk && i != bos && i != eos)
                insert(own, K, {z[i] - largest - log_sum + alive[k], k * V + i});
        if (thread == 0) ends[k] = z[eos] - largest - log_sum + alive[k];
    }
    for (int half = threads / 2; half > 0; half /= 2) {
        __syncthreads();
        if (thread < half)
            for (int k = 0; k < K; k++) insert(own, K, kept[(thread + half) * K + k]);
    }
    __syncthreads();
    if (thread > 0) return;

    const long long step = progress[2 * slot], running = progress[2 * slot + 1];
    float* total = totals + (long long)slot * totals_stride + step * 2 * K;
    for (int k = 0; k < K; k++) {
        const int beam = own[k].place / V, token = own[k].place % V;
        const bool none = own[k].place == 0x7fffffff;
        const long long row = (long long)slot * K + (none ? 0 : beam);
        alive[k] = own[k].total;
        newest[slot * K + k] = row << 32 | (none ? 0 : token);
        continuations[(long long)slot * continuations_stride + step * K + k] = newest[slot * K + k];
        total[k] = alive[k], total[K + k] = ends[k];
    }
    Candidate union_[MAX_BEAMS], finished[MAX_BEAMS];
    for (int k = 0; k < K; k++) union_[k] = finished[k] = {NONE, 0x7fffffff};
    for (int i = 0; i < 2 * K; i++) insert(union_, K, {alive[i], i});
    const float cutoff = union_[K - 1].total, *limit = limits + (long long)slot * limits_stride + step * 4;
    for (int k = 0; k < K; k++) {
        insert(finished, K, {pool[slot * K + k], k});
        insert(finished, K, {ends[k] < cutoff ? NONE : ends[k] / limit[1], K + k});
    }
    for (int k = 0; k < K; k++) pool[slot * K + k] = finished[k].total;
    const float divisor = finished[K - 1].total == NONE ? limit[0] : limit[2];
    const bool promising = alive[0] / divisor > finished[nth[slot * nth_stride]].total;
    progress[2 * slot] = step + running;
    progress[2 * slot + 1] = running && promising;
}
