// Scaled dot-product attention (Vaswani et al. 2017, equation 1) in two forms. All heads of a query are computed
// together.
#pragma once

#include <vector>

#include "linear.hpp"

namespace mt {

inline int whole_vectors(int count) { return (count + W - 1) / W * W; }

// p[0:count] = softmax(p[0:count] * scale). The size of p is a multiple of the vector width.
inline void softmax(float* p, int count, float scale) {
    const int room = whole_vectors(count), last = room - W;
    const Floats end = simd::first(simd::load(p + last), count - last, -INFINITY);
    Floats most = end;
    for (int t = 0; t < last; t += W) most = simd::maximum(most, simd::load(p + t));
    scale *= simd::LOG2_E;
    const float peak = simd::largest(most) * scale;
    const Floats final = simd::power_of_two(end * scale - peak);
    Floats total = final;
    for (int t = 0; t < last; t += W) {
        const Floats e = simd::power_of_two(simd::load(p + t) * scale - peak);
        total += e;
        simd::store(p + t, e);
    }
    const float inverse = 1.0f / simd::sum(total);
    for (int t = 0; t < last; t += W) simd::store(p + t, simd::load(p + t) * inverse);
    simd::store(p + last, final * inverse);
}

// Keys and values that several queries attend to. Keys are transposed, [D, positions padded to whole vectors]: a vector
// holds one component of many keys, so that no sum within a vector is needed.
class SharedKeys {
  public:
    static size_t size(int count, int d_model) { return size_t(whole_vectors(count) + count) * d_model; }

    // Write the transposed keys, then the values, of rows [count, stride] into memory of `size` floats.
    static void fill(float* memory, const float* keys, int stride, int count, int d_model) {
        const int room = whole_vectors(count);
        float* values = memory + size_t(room) * d_model;
        for (int i = 0; i < d_model; i++) {
            for (int t = 0; t < count; t++) *memory++ = keys[size_t(t) * stride + i];
            for (int t = count; t < room; t++) *memory++ = 0.0f;
        }
        for (int t = 0; t < count; t++)
            std::copy_n(keys + size_t(t) * stride + d_model, d_model, values + size_t(t) * d_model);
    }

    // Queries [rows, stride] -> out [rows, out_stride]. Several queries are computed together, so that keys and values
    // are loaded once for all of them. The attention weights are written to `weights` [heads, rows, count], unless it
    // is null.
    static void attend(const float* memory, const float* queries, int stride, int rows, int count, int d_model,
                       int heads, std::vector<float>& scores, float* out, int out_stride, float* weights = nullptr) {
        const SharedKeys keys{memory, count, d_model, d_model / heads};
        scores.resize(std::max(scores.size(), size_t(4) * whole_vectors(count)));
        for (int h = 0; h < heads; h++) {
            const int at = h * (d_model / heads);
            for (int r = 0, step; r < rows; r += step) {
                step = r + 4 <= rows ? 4 : 1;
                const float* from = queries + size_t(r) * stride;
                float* to = out + size_t(r) * out_stride;
                if (step == 4)
                    keys.head<4>(at, from, stride, scores.data(), to, out_stride);
                else
                    keys.head<1>(at, from, stride, scores.data(), to, out_stride);
                for (int i = 0; weights && i < step; i++)
                    weights = std::copy_n(scores.data() + size_t(i) * keys.room_, count, weights);
            }
        }
    }

  private:
    SharedKeys(const float* memory, int count, int d_model, int d_k)
        : memory_(memory), count_(count), room_(whole_vectors(count)), d_model_(d_model), d_k_(d_k) {}

    // Compute the head that begins at column `at` of a row.
    template <int ROWS>
    void head(int at, const float* queries, int stride, float* p, float* out, int out_stride) const {
        constexpr int sums = ROWS < 4 ? 4 : 1;  // independent partial sums of each row, so that additions overlap
        const float* keys = memory_ + size_t(at) * room_;
        for (int t = 0; t < room_; t += W) {
            Floats total[ROWS][sums] = {};
            int i = 0;
            for (; i + sums <= d_k_; i += sums)
#pragma GCC unroll 4
                for (int c = 0; c < sums; c++) {
                    const Floats k = simd::load(keys + size_t(i + c) * room_ + t);
#pragma GCC unroll 4
                    for (int r = 0; r < ROWS; r++) total[r][c] += k * queries[size_t(r) * stride + at + i + c];
                }
            for (; i < d_k_; i++) {
                const Floats k = simd::load(keys + size_t(i) * room_ + t);
                for (int r = 0; r < ROWS; r++) total[r][0] += k * queries[size_t(r) * stride + at + i];
            }
#pragma GCC unroll 4
            for (int r = 0; r < ROWS; r++) {
#pragma GCC unroll 4
                for (int c = 1; c < sums; c++) total[r][0] += total[r][c];
                simd::store(p + size_t(r) * room_ + t, total[r][0]);
            }
        }
        for (int r = 0; r < ROWS; r++) softmax(p + size_t(r) * room_, count_, 1.0f / std::sqrt(float(d_k_)));
        const float* values = memory_ + size_t(room_) * d_model_ + at;
        int i = 0;
        for (; i + 4 * W <= d_k_; i += 4 * W) sum<ROWS, 4>(values + i, p, out + at + i, out_stride);
        for (; i + W <= d_k_; i += W) sum<ROWS, 1>(values + i, p, out + at + i, out_stride);
        for (; i < d_k_; i++)
            for (int r = 0; r < ROWS; r++) {
                float total = 0;
                for (int t = 0; t < count_; t++) total += values[size_t(t) * d_model_ + i] * p[size_t(r) * room_ + t];
                out[size_t(r) * out_stride + at + i] = total;
            }
    }

    // Compute some vectors of the sum of values, weighted by p.
    template <int ROWS, int VECTORS>
    void sum(const float* values, const float* p, float* out, int out_stride) const {
        Floats total[ROWS][VECTORS] = {};
        for (int t = 0; t < count_; t++, values += d_model_)
#pragma GCC unroll 4
            for (int c = 0; c < VECTORS; c++) {
                const Floats v = simd::load(values + c * W);
#pragma GCC unroll 4
                for (int r = 0; r < ROWS; r++) total[r][c] += v * p[size_t(r) * room_ + t];
            }
#pragma GCC unroll 4
        for (int r = 0; r < ROWS; r++)
#pragma GCC unroll 4
            for (int c = 0; c < VECTORS; c++) simd::store(out + size_t(r) * out_stride + c * W, total[r][c]);
    }

    const float* memory_;
    int count_, room_, d_model_, d_k_;
};

// Attention of one query to scattered keys and values: the key of position t begins at places[t] + `keys`, its value at
// places[t] + `values`.
inline void attend_to_scattered(const float* query, const float* const* places, size_t keys, size_t values, int count,
                                int d_model, int heads, std::vector<float>& scores, float* out) {
    const int d_k = d_model / heads, room = whole_vectors(count), whole = d_k / W * W;
    const float scale = 1.0f / std::sqrt(float(d_k));
    scores.resize(std::max(scores.size(), size_t(room)));
    float* p = scores.data();
    for (int h = 0; h < heads; h++) {
        const float* q = query + h * d_k;
        const size_t key = keys + h * d_k, value = values + h * d_k;
        for (int first = 0; first < room; first += W) {
            Floats products[W];  // only those of `here` positions are written, because most histories are short
            const int here = std::min(W, count - first);
            for (int t = 0; t < here; t++) {
                const float* k = places[first + t] + key;
                Floats product{};
                for (int i = 0; i < whole; i += W) product += simd::load(k + i) * simd::load(q + i);
                for (int i = whole; i < d_k; i++) product[0] += k[i] * q[i];
                products[t] = product;
            }
            simd::store(p + first, simd::sums(products, here));
        }
        softmax(p, count, scale);
        int i = 0;
        for (; i + 4 * W <= d_k; i += 4 * W) {
            Floats total[4] = {};
            for (int t = 0; t < count; t++)
#pragma GCC unroll 4
                for (int c = 0; c < 4; c++) total[c] += simd::load(places[t] + value + i + c * W) * p[t];
#pragma GCC unroll 4
            for (int c = 0; c < 4; c++) simd::store(out + h * d_k + i + c * W, total[c]);
        }
        for (; i + W <= d_k; i += W) {
            Floats total{};
            for (int t = 0; t < count; t++) total += simd::load(places[t] + value + i) * p[t];
            simd::store(out + h * d_k + i, total);
        }
        for (; i < d_k; i++) {
            float total = 0;
            for (int t = 0; t < count; t++) total += places[t][value + i] * p[t];
            out[h * d_k + i] = total;
        }
    }
}

}  // namespace mt
