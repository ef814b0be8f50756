// One vector type for every processor. The same source is compiled once for each instruction set (see build.py).
// Intrinsics are used only for operations that C++ cannot express.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>

#if defined(__AVX2__)
#pragma GCC diagnostic push
#if !defined(__clang__)  // GCC 12 warns about its own header (GCC bug 105593)
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#pragma GCC diagnostic pop
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace simd {

#if defined(__AVX512F__)
constexpr int W = 16;  // lanes
#elif defined(__AVX2__)
constexpr int W = 8;
#else
constexpr int W = 4;
#endif

typedef float Floats __attribute__((vector_size(W * 4)));
typedef int32_t Ints __attribute__((vector_size(W * 4)));

// Whether the processor has 32 vector registers instead of 16.
#if defined(__AVX512F__) || defined(__aarch64__)
constexpr bool MANY_REGISTERS = true;
#else
constexpr bool MANY_REGISTERS = false;
#endif

inline Floats load(const float* p) {
    Floats v;
    std::memcpy(&v, p, sizeof v);
    return v;
}

inline void store(float* p, Floats v) { std::memcpy(p, &v, sizeof v); }

inline Floats all(float x) { return x - Floats{}; }

inline Floats maximum(Floats a, Floats b) {
#if defined(__AVX512F__)
    return _mm512_max_ps(a, b);
#elif defined(__AVX2__)
    return _mm256_max_ps(a, b);
#else
    return a > b ? a : b;
#endif
}

inline Ints lanes() {
    constexpr int32_t numbers[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    Ints lane;
    std::memcpy(&lane, numbers, sizeof lane);
    return lane;
}

// The first `count` lanes of v; all other lanes are `others`.
inline Floats first(Floats v, int count, float others) {
    return lanes() < count ? v : all(others);
}

inline Floats magnitude(Floats v) { return (Floats)((Ints)v & 0x7fffffff); }

#if defined(__AVX2__) && !defined(__AVX512F__)
// Combine the halves of v by `join` until one number is left.
template <typename Join>
inline float folded(Floats v, Join join) {
    __m128 half = join(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    half = join(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(join(half, _mm_movehdup_ps(half)));
}
#endif

inline int32_t sum(Ints v) {
#if defined(__AVX512F__)
    return _mm512_reduce_add_epi32((__m512i)v);
#else
    int32_t total = 0;
    for (int i = 0; i < W; i++) total += v[i];
    return total;
#endif
}

inline float sum(Floats v) {
#if defined(__AVX512F__)
    return _mm512_reduce_add_ps(v);
#elif defined(__AVX2__)
    return folded(v, [](__m128 a, __m128 b) { return _mm_add_ps(a, b); });
#elif defined(__aarch64__)
    return vaddvq_f32((float32x4_t)v);
#else
    float total = 0;
    for (int i = 0; i < W; i++) total += v[i];
    return total;
#endif
}

#if !defined(__AVX2__) || defined(__AVX512F__)
// Every second lane of a, then of b, beginning with lane `first`. `i` are the lanes of the result.
template <int first, int... i>
inline Floats every_second(Floats a, Floats b, std::integer_sequence<int, i...>) {
#if defined(__clang__)
    return __builtin_shufflevector(a, b, (2 * i + first)...);
#else  // GCC has this function only since version 12
    return __builtin_shuffle(a, b, Ints{(2 * i + first)...});
#endif
}

// Fold `count` vectors: each level adds the neighbouring lanes of pairs of vectors, so that half of the vectors are left.
template <int count>
inline Floats folded_pairs(Floats* v) {
    const std::make_integer_sequence<int, W> lane;
    for (int i = 0; i < count / 2; i++)
        v[i] = every_second<0>(v[2 * i], v[2 * i + 1], lane) + every_second<1>(v[2 * i], v[2 * i + 1], lane);
    if constexpr (count > 2) return folded_pairs<count / 2>(v);
    return v[0];
}
#endif

// Lane i of the result is the sum of v[i], and 0 from lane `count` on. The vectors from v[count] on need not be written.
inline Floats sums(Floats* v, int count) {
#if defined(__AVX2__) && !defined(__AVX512F__)
    for (int i = count; i < W; i++) v[i] = Floats{};
    const __m256 low = _mm256_hadd_ps(_mm256_hadd_ps(v[0], v[1]), _mm256_hadd_ps(v[2], v[3]));
    const __m256 high = _mm256_hadd_ps(_mm256_hadd_ps(v[4], v[5]), _mm256_hadd_ps(v[6], v[7]));
    return _mm256_add_ps(_mm256_permute2f128_ps(low, high, 0x20), _mm256_permute2f128_ps(low, high, 0x31));
#else
    if (2 * count > W) {
        for (int i = count; i < W; i++) v[i] = Floats{};
        return folded_pairs<W>(v);
    }
    for (int i = count; i < W / 2; i++) v[i] = Floats{};
    const std::make_integer_sequence<int, W> lane;
    const Floats half = folded_pairs<W / 2>(v);
    return every_second<0>(half, Floats{}, lane) + every_second<1>(half, Floats{}, lane);
#endif
}

inline float largest(Floats v) {
#if defined(__AVX512F__)
    return _mm512_reduce_max_ps(v);
#elif defined(__AVX2__)
    return folded(v, [](__m128 a, __m128 b) { return _mm_max_ps(a, b); });
#elif defined(__aarch64__)
    return vmaxvq_f32((float32x4_t)v);
#else
    float most = v[0];
    for (int i = 1; i < W; i++) most = v[i] > most ? v[i] : most;
    return most;
#endif
}

// One bit per lane, which is 1 where a > b.
inline unsigned above(Floats a, Floats b) {
#if defined(__AVX512F__)
    return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ);
#elif defined(__AVX2__)
    return unsigned(_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_GT_OQ)));
#elif defined(__aarch64__)
    return vaddvq_u32((uint32x4_t)(a > b) & uint32x4_t{1, 2, 4, 8});
#else
    unsigned bits = 0;
    for (int i = 0; i < W; i++) bits |= unsigned(a[i] > b[i]) << i;
    return bits;
#endif
}

// Round to the nearest integer, for |v| < 2^22: adding 1.5 * 2^23 moves the integer to the low bits.
inline Ints nearest(Floats v) {
    const Floats shifted = v + 12582912.0f;
    return (Ints)shifted - 0x4b400000;
}

inline Floats as_floats(Ints v) { return __builtin_convertvector(v, Floats); }

// Convert lanes from -127 to 127 to bytes.
inline void store_bytes(int8_t* p, Ints v) {
#if defined(__AVX512F__)
    _mm_storeu_si128((__m128i*)p, _mm512_cvtepi32_epi8((__m512i)v));
#elif defined(__AVX2__)
    const __m128i low = _mm256_castsi256_si128((__m256i)v), high = _mm256_extracti128_si256((__m256i)v, 1);
    const __m128i words = _mm_packs_epi32(low, high);
    _mm_storel_epi64((__m128i*)p, _mm_packs_epi16(words, words));
#elif defined(__aarch64__)
    const int16x4_t words = vmovn_s32((int32x4_t)v);
    const int8x8_t bytes = vmovn_s16(vcombine_s16(words, words));
    std::memcpy(p, &bytes, 4);
#else
    for (int i = 0; i < W; i++) p[i] = int8_t(v[i]);
#endif
}

constexpr float LOG2_E = 1.44269504088896341f;

// 2^t, for -126 < t < 127 with a relative error of 2e-7; below, 1e-38 or less. t = n + f with |f| <= 1/2, a polynomial
// for 2^f (least squares at Chebyshev nodes), and n to the exponent.
inline Floats power_of_two(Floats t) {
#if defined(__AVX512F__)
    const Floats f = _mm512_reduce_ps(t, _MM_FROUND_TO_NEAREST_INT), n = t - f;
#else
    t = maximum(all(-126.0f), t);  // in this order NaN stays NaN
    const Floats shifted = t + 12582912.0f, f = t - (shifted - 12582912.0f);
#endif
    Floats p = f * 0.001326697039f + 0.009675459746f;
    p = p * f + 0.05550742616f;
    p = p * f + 0.2402212175f;
    p = p * f + 0.6931469492f;
    p = p * f + 1.000000071f;
#if defined(__AVX512F__)
    return _mm512_scalef_ps(p, n);
#else
    return (Floats)((Ints)p + ((Ints)shifted << 23));
#endif
}

// e^v; the rounding of v log2 e adds 6e-8 |v| to the relative error.
inline Floats exponential(Floats v) { return power_of_two(v * LOG2_E); }

// Added to a weight from -127 to 127, because VNNI requires that one factor is unsigned.
#if defined(__aarch64__) || (defined(__AVX2__) && !defined(__AVX512VNNI__) && !defined(__AVXVNNI__))
constexpr int OFFSET = 0;
#else
constexpr int OFFSET = 128;
#endif

// Add to each lane of `total` the dot product of the lane's four bytes of `weights` with four signed bytes, -127 to
// 127.
inline Ints multiply_bytes(Ints total, const uint8_t* weights, const int8_t* four) {
    int32_t packed;
    std::memcpy(&packed, four, 4);
#if defined(__AVX512VNNI__)
    return (Ints)_mm512_dpbusd_epi32((__m512i)total, _mm512_loadu_si512(weights), _mm512_set1_epi32(packed));
#elif defined(__AVXVNNI__)
    return (Ints)_mm256_dpbusd_avx_epi32(
        (__m256i)total, _mm256_loadu_si256((const __m256i*)weights), _mm256_set1_epi32(packed));
#elif defined(__AVX2__)  // |w| times x with the sign of w: two products, of 2 * 127 * 127 at most, fit into 16 bits
    const __m256i w = _mm256_loadu_si256((const __m256i*)weights), x = _mm256_set1_epi32(packed);
    const __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w));
    return total + (Ints)_mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
#elif defined(__aarch64__)
    const int8x16_t w = vld1q_s8((const int8_t*)weights), x = vreinterpretq_s8_s32(vdupq_n_s32(packed));
#if defined(__ARM_FEATURE_DOTPROD)
    return (Ints)vdotq_s32((int32x4_t)total, w, x);
#else  // a sum of two products, 2 * 127 * 127 at most, fits into 16 bits
    const int16x8_t low = vmull_s8(vget_low_s8(w), vget_low_s8(x)), high = vmull_high_s8(w, x);
    return (Ints)vpadalq_s16((int32x4_t)total, vpaddq_s16(low, high));
#endif
#else
    for (int i = 0; i < W; i++)
        for (int j = 0; j < 4; j++) total[i] += int32_t(weights[4 * i + j]) * four[j];
    return total;
#endif
}

}  // namespace simd
