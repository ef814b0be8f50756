// Scaled dot-product attention (Vaswani et al. 2017, equation 1) of one query, all its heads, in two forms.
#pragma once

#include <vector>

#include "linear.hpp"

namespace mt {

inline int whole_vectors(int count) { return (count + W - 1) / W * W; }

// p[0:count] = softmax(p[0:count] * scale); p has room for whole vectors, and ends in zeros.
inline void softmax(float* p, int count, float scale) {
    const int room = whole_vectors(count);
    for (int t = count; t < room; t++) p[t] = -INFINITY;
    Floats most = simd::load(p);
    for (int t = W; t < room; t += W) most = simd::maximum(most, simd::load(p + t));
    const Floats peak = simd::all(simd::largest(most) * scale);
    Floats total{};
    for (int t = 0; t < room; t += W) {
        const Floats e = simd::exponential(simd::load(p + t) * scale - peak);
        total += e;
        simd::store(p + t, e);
    }
    const float inverse = 1.0f / simd::sum(total);
    for (int t = 0; t < room; t += W) simd::store(p + t, simd::load(p + t) * inverse);
    for (int t = count; t < room; t++) p[t] = 0.0f;
}

// out[0:d_k] = sum over t of p[t] value(t)[0:d_k]
template <typename Value>
void weighted_sum(const float* p, int count, int d_k, float* out, Value&& value) {
    constexpr int most = 4;  // vectors that are summed at a time
    int i = 0;
    for (; i + most * W <= d_k; i += most * W) {
        Floats total[most] = {};
        for (int t = 0; t < count; t++) {
            const float* v = value(t) + i;
#pragma GCC unroll 4
            for (int c = 0; c < most; c++) total[c] += simd::load(v + c * W) * p[t];
        }
#pragma GCC unroll 4
        for (int c = 0; c < most; c++) simd::store(out + i + c * W, total[c]);
    }
    for (; i + W <= d_k; i += W) {
        Floats total{};
        for (int t = 0; t < count; t++) total += simd::load(value(t) + i) * p[t];
        simd::store(out + i, total);
    }
    for (; i < d_k; i++) {
        float total = 0;
        for (int t = 0; t < count; t++) total += value(t)[i] * p[t];
        out[i] = total;
    }
}

// Keys and values that several queries attend to. Keys lie across, [D, whole vectors of positions], so that a vector
// holds one number of many keys and no product has to be summed up within a vector.
class SharedKeys {
  public:
    static size_t size(int count, int d_model) { return size_t(whole_vectors(count) + count) * d_model; }

    // Keys, and at once behind them values, [count, stride], into memory of `size` floats.
    static void fill(float* memory, const float* keys, int stride, int count, int d_model) {
        const int room = whole_vectors(count);
        std::fill(memory, memory + size_t(room) * d_model, 0.0f);
        float* values = memory + size_t(room) * d_model;
        for (int t = 0; t < count; t++, keys += stride) {
            for (int i = 0; i < d_model; i++) memory[size_t(i) * room + t] = keys[i];
            std::copy(keys + d_model, keys + 2 * d_model, values + size_t(t) * d_model);
        }
    }

    static void attend(const float* memory, const float* query, int count, int d_model, int heads,
                       std::vector<float>& scores, float* out) {
        const int d_k = d_model / heads, room = whole_vectors(count);
        const float scale = 1.0f / std::sqrt(float(d_k));
        const float* values = memory + size_t(room) * d_model;
        scores.resize(std::max(scores.size(), size_t(room)));
        for (int h = 0; h < heads; h++) {
            const float* q = query + h * d_k;
            const float* keys = memory + size_t(h) * d_k * room;
            for (int t = 0; t < room; t += W) {
                Floats total[4] = {};  // independent, so that one need not wait for another
                int i = 0;
                for (; i + 4 <= d_k; i += 4)
#pragma GCC unroll 4
                    for (int c = 0; c < 4; c++) total[c] += simd::load(keys + size_t(i + c) * room + t) * q[i + c];
                for (; i < d_k; i++) total[0] += simd::load(keys + size_t(i) * room + t) * q[i];
                simd::store(&scores[t], (total[0] + total[1]) + (total[2] + total[3]));
            }
            softmax(scores.data(), count, scale);
            weighted_sum(scores.data(), count, d_k, out + h * d_k,
                         [=](int t) { return values + size_t(t) * d_model + h * d_k; });
        }
    }
};

// Keys and values that lie wherever `key(t)` and `value(t)` say, D floats each.
template <typename Key, typename Value>
void attend_to_scattered(const float* query, int count, int d_model, int heads, std::vector<float>& scores, float* out,
                         Key&& key, Value&& value) {
    const int d_k = d_model / heads, room = whole_vectors(count), whole = d_k / W * W;
    const float scale = 1.0f / std::sqrt(float(d_k));
    scores.resize(std::max(scores.size(), size_t(room)));
    for (int h = 0; h < heads; h++) {
        const float* q = query + h * d_k;
        for (int first = 0; first < room; first += W) {
            Floats products[W];
            for (int t = 0; t < W; t++) {
                products[t] = Floats{};
                if (first + t >= count) continue;
                const float* k = key(first + t) + h * d_k;
                for (int i = 0; i < whole; i += W) products[t] += simd::load(k + i) * simd::load(q + i);
                for (int i = whole; i < d_k; i++) products[t][0] += k[i] * q[i];
            }
            simd::store(&scores[first], simd::sums(products));
        }
        softmax(scores.data(), count, scale);
        weighted_sum(scores.data(), count, d_k, out + h * d_k, [&](int t) { return value(t) + h * d_k; });
    }
}

}  // namespace mt
