// Linear layers with packed weights, float32 or int8, and the small functions between them.
// A matrix of activations is row-major float; a row is padded with zeros to `padded(width)` floats.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <new>
#include <utility>
#include <vector>

#include "team.hpp"

namespace mt {

using simd::Floats;
using simd::Ints;
using simd::W;

constexpr int PANEL = 64;              // outputs of a panel, equal for all processors
constexpr int TILE = simd::MANY_REGISTERS ? 6 : 4;  // rows that are computed together

// Number of output vectors that are computed together for `rows` rows: as many sums as fit into the registers, and
// enough that no sum waits for the previous one.
constexpr int vectors(int rows) {
    if (W == 16) return 4;
    return rows == 1 ? 8 : rows <= 3 || simd::MANY_REGISTERS ? 4 : 2;
}

constexpr int STEP = PANEL * 4, LINE = 64;  // bytes of weights that a panel reads together; bytes of a cache line

inline int padded(int width) { return (width + PANEL - 1) / PANEL * PANEL; }

// A buffer that is aligned to cache lines and never shrinks.
template <typename T>
class Buffer {
  public:
    Buffer() = default;
    Buffer(const Buffer&) = delete;
    Buffer(Buffer&& other) noexcept { *this = std::move(other); }
    Buffer& operator=(Buffer&& other) noexcept {
        std::swap(data_, other.data_), std::swap(size_, other.size_);
        return *this;
    }
    ~Buffer() { std::free(data_); }

    // Return room for `size` elements. If the buffer grows, its content is lost; if `zero` is true, the new content is
    // zero.
    T* reserve(size_t size, bool zero = true) {
        if (size > size_) {
            const size_t room = size_ ? size + size / 2 : size;
            std::free(data_);
            size_ = 0;
            data_ = static_cast<T*>(std::aligned_alloc(64, (room * sizeof(T) + 63) / 64 * 64));
            if (!data_) throw std::bad_alloc();
            size_ = room;
            if (zero) std::memset(static_cast<void*>(data_), 0, size_ * sizeof(T));
        }
        return data_;
    }
    T* get() const { return data_; }

  private:
    T* data_ = nullptr;
    size_t size_ = 0;
};

// Memory for the arrays of a model. Each array begins at a cache line. If the memory is `ready`, it has the arrays
// already. If `begin` is null, only the required size is computed.
class Memory {
  public:
    Memory(uint8_t* begin, bool ready) : begin_(begin), ready_(ready) {}

    template <typename T>
    T* take(size_t count) {
        uint8_t* array = begin_ ? begin_ + size_ : nullptr;
        size_ += (count * sizeof(T) + LINE - 1) / LINE * LINE;
        return reinterpret_cast<T*>(array);
    }
    // Copy an array into the memory.
    const float* keep(const float* from, size_t count) {
        float* to = take<float>(count);
        if (wanted()) std::copy(from, from + count, to);
        return to;
    }
    bool wanted() const { return begin_ && !ready_; }  // whether the arrays must be written; the memory is zero
    size_t size() const { return size_; }

  private:
    uint8_t* const begin_;
    const bool ready_;
    size_t size_ = 0;
};

// A matrix, or a vector as its only row: of floats, or of bytes with a scale for each row (mt/kernels/quantization.py).
struct Tensor {
    const float* data;
    const int8_t* bytes;
    const float* scales;
    int64_t rows, columns;

    // A row as floats, in `scratch` if it is stored as bytes.
    const float* row(int64_t r, std::vector<float>& scratch) const {
        if (!bytes) return data + r * columns;
        scratch.resize(columns);
        for (int64_t i = 0; i < columns; i++) scratch[i] = float(bytes[r * columns + i]) * scales[r];
        return scratch.data();
    }
};

// Factor that maps numbers of at most `peak` to bytes; 0 if the factor would overflow.
inline float byte_scale(float peak) { return peak > 1e-30f ? 127.0f / peak : 0.0f; }

// The scale of a row of weights with the largest magnitude `peak`: peak / 127, or 0 if the row is nearly 0. The scale
// is rounded to 16 significant bits, so that byte * scale is exact in float32, and quantising these products gives the
// same bytes and the same scale. mt/kernels/quantization.py does the same for stored weights.
inline float weight_scale(float peak) {
    float scale = peak / 127.0f;
    uint32_t bits;
    std::memcpy(&bits, &scale, sizeof bits);
    bits = (bits + 0x80) & ~0xffu;
    std::memcpy(&scale, &bits, sizeof bits);
    return scale > 1e-32f ? scale : 0.0f;
}

// Quantises a row of weights, rounded to the nearest: calls store(i, byte from -127 to 127). Returns the scale of the
// row, which is NaN if a weight is not finite.
template <typename Store>
float quantise_weights(const float* weights, int count, Store&& store) {
    float peak = 0, odd = 0;
    for (int i = 0; i < count; i++) peak = std::max(peak, std::fabs(weights[i])), odd += weights[i] * 0.0f;
    const float scale = weight_scale(peak);
    const float inverse = scale > 0 ? 1.0f / scale : 0.0f;
    for (int i = 0; i < count; i++) store(i, int(std::lrintf(weights[i] * inverse)));
    return scale + odd;
}

// Rows of activations as bytes from -127 to 127. Each row has a scale of its own, so that no row depends on another.
class QuantisedRows {
  public:
    // x[r, 0:width] is about scale[r] * bytes[r, 0:width], rounded to the nearest; sums[r] = sum of bytes[r]. If a
    // number of a row is not finite, the scale is NaN, so that all results of the row are NaN.
    void quantise(const float* x, int stride, int rows, int width) {
        width_ = padded(width);
        bytes_.reserve(size_t(rows) * width_), scales_.reserve(rows), sums_.reserve(rows);
        for (int r = 0; r < rows; r++) quantise_row(x + size_t(r) * stride, r);
    }
    const int8_t* row(int r) const { return bytes_.get() + size_t(r) * width_; }
    int stride() const { return width_; }
    float scale(int r) const { return scales_.get()[r]; }
    int32_t sum(int r) const { return sums_.get()[r]; }

  private:
    void quantise_row(const float* x, int r) {
        Floats most{}, odd{};
        for (int i = 0; i < width_; i += W) {
            const Floats v = simd::load(x + i);
            most = simd::maximum(most, simd::magnitude(v));
            odd += v * 0.0f;
        }
        int8_t* out = bytes_.get() + size_t(r) * width_;
        if (simd::sum(odd) != 0.0f) {  // NaN
            std::memset(out, 0, width_);
            sums_.get()[r] = 0, scales_.get()[r] = NAN;
            return;
        }
        const float peak = simd::largest(most);
        const float inverse = byte_scale(peak);
        Ints total{};
        for (int i = 0; i < width_; i += W) {
            const Ints v = simd::nearest(simd::load(x + i) * inverse);
            simd::store_bytes(out + i, v);
            total += v;
        }
        sums_.get()[r] = simd::sum(total);
        scales_.get()[r] = peak / 127.0f;
    }
    int width_ = 0;
    Buffer<int8_t> bytes_;
    Buffer<float> scales_;
    Buffer<int32_t> sums_;
};

// Buffers of one thread.
struct Workspace {
    QuantisedRows quantised;
    Buffer<float> x, normed, projected, hidden, attended, memory;
    std::vector<float> scores;
    Team* team = nullptr;  // threads that help with the present call, or null
};

// y = x W^T + b. Outputs are divided into panels of 64. The weights of a panel are stored in the order in which they
// are read: float32 as [inputs, 64], int8 as [inputs / 4, 64, 4], where a byte is weight + OFFSET.
class Linear {
  public:
    Linear() = default;

    // Weights [outputs, inputs], and biases [outputs] or none. Several of both are concatenated along the outputs.
    Linear(const std::vector<Tensor>& weights, const std::vector<Tensor>& biases, bool int8, Memory& memory)
        : inputs_(padded(int(weights[0].columns))), int8_(int8) {
        int outputs = 0;
        for (const Tensor& part : weights) outputs += int(part.rows);
        outputs_ = padded(outputs);
        uint8_t* to = memory.take<uint8_t>(size());
        float* scales = memory.take<float>(int8 ? outputs_ : 0);
        float* bias = memory.take<float>(outputs_);
        weights_ = to, scales_ = scales, bias_ = bias;
        if (!memory.wanted()) return;
        for (const Tensor& part : biases) bias = std::copy(part.data, part.data + part.columns, bias);
        if (int8) std::memset(to, simd::OFFSET, size());
        std::vector<float> scratch;
        int output = 0;
        for (const Tensor& part : weights)
            for (int64_t r = 0; r < part.rows; r++, output++) {
                const float* row = part.row(r, scratch);
                if (int8) scales[output] = pack_bytes(row, int(part.columns), output, to);
                else pack_floats(row, int(part.columns), output, reinterpret_cast<float*>(to));
            }
    }

    // A layer with some outputs of another layer, whose words() are given. Its results are equal bit for bit.
    Linear(const Linear& from, const std::vector<uint32_t>& words, const std::vector<int32_t>& chosen)
        : inputs_(from.inputs_), outputs_(padded(int(chosen.size()))), int8_(from.int8_) {
        const int count = from.words_an_output();
        const size_t vectors = size_t(outputs_) * sizeof(float);
        uint8_t* to = own_.reserve(size() + 2 * vectors);
        float *scales = reinterpret_cast<float*>(to + size()), *bias = scales + outputs_;
        weights_ = to, scales_ = scales, bias_ = bias;
        for (size_t o = 0; o < chosen.size(); o++) {
            bias[o] = from.bias_[chosen[o]];
            if (int8_) scales[o] = from.scales_[chosen[o]];
            const uint32_t* row = &words[size_t(chosen[o]) * count];
            uint8_t* lane = to + (o / PANEL * count * PANEL + o % PANEL) * 4;
            for (int i = 0; i < count; i++) std::memcpy(lane + size_t(i) * PANEL * 4, row + i, 4);
        }
    }

    // The packed weights by output, [outputs, words_an_output()]. A word is a float or four bytes.
    std::vector<uint32_t> words() const {
        const int count = words_an_output();
        std::vector<uint32_t> rows(size_t(outputs_) * count);
        for (size_t o = 0; o < size_t(outputs_); o++)
            for (int i = 0; i < count; i++)
                std::memcpy(&rows[o * count + i], weights_ + ((o / PANEL * count + i) * PANEL + o % PANEL) * 4, 4);
        return rows;
    }

    int outputs() const { return outputs_; }

    // Calls finish(row, first output, values[PANEL]) for each panel and row. Quantises x [rows, stride] if the weights
    // are int8. If work.team is not null, several threads call `finish`, each for other panels.
    template <typename Finish>
    void apply(const float* x, int stride, int rows, Workspace& work, Finish&& finish) const {
        const QuantisedRows& bytes = work.quantised;
        if (int8_) work.quantised.quantise(x, stride, rows, inputs_);
        const auto panel = [&](int i) { multiply_panel(i * PANEL, x, stride, rows, bytes, finish); };
        const int panels = outputs_ / PANEL;
        if (work.team && size() * size_t(rows) >= WORTH_SHARING) work.team->run(panels, panel);
        else
            for (int i = 0; i < panels; i++) panel(i);
    }

  private:
    // Bytes of weights times rows from which on a product is split: about a microsecond of one thread.
    static constexpr size_t WORTH_SHARING = 1 << 17;

    template <typename Finish>
    void multiply_panel(int panel, const float* x, int stride, int rows, const QuantisedRows& q, Finish&& finish) const {
        int r = 0;
        for (; r + TILE <= rows; r += TILE) tile<TILE>(panel, x, stride, q, r, finish);
        switch (rows - r) {
            case 5: tile<5>(panel, x, stride, q, r, finish); break;
            case 4: tile<4>(panel, x, stride, q, r, finish); break;
            case 3: tile<3>(panel, x, stride, q, r, finish); break;
            case 2: tile<2>(panel, x, stride, q, r, finish); break;
            case 1: tile<1>(panel, x, stride, q, r, finish); break;
            default: break;
        }
    }

    int words_an_output() const { return int8_ ? inputs_ / 4 : inputs_; }
    size_t size() const { return size_t(outputs_) * words_an_output() * 4; }  // of the weights in bytes

    template <int ROWS, typename Finish>
    void tile(int panel, const float* x, int stride, const QuantisedRows& q, int row, Finish&& finish) const {
        Floats values[ROWS][PANEL / W];
        for (int v = 0; v < PANEL / W; v += vectors(ROWS)) {
            if (int8_) multiply_bytes<ROWS>(panel, v, q, row, values);
            else multiply_floats<ROWS>(panel, v, x, stride, row, values);
        }
        for (int r = 0; r < ROWS; r++) finish(row + r, panel, values[r]);
    }

    // Prefetch a part of the next panel during a pass over this panel, one cache line per step. Without prefetching,
    // the memory would be idle while all rows after the first few are multiplied. Four passes fetch the whole panel.
    template <int ROWS>
    static const uint8_t* ahead(const void* panel, int steps, int row, int v) {
        constexpr int PARTS = STEP / LINE;
        const int pass = row / TILE * (PANEL / W / vectors(ROWS)) + v / vectors(ROWS);
        return static_cast<const uint8_t*>(panel) + size_t(steps) * (STEP + pass % PARTS * LINE);
    }

    // The sums of a row run over the inputs in the same order for any ROWS, so that no row depends on its neighbours.
    template <int ROWS>
    void multiply_floats(int panel, int v, const float* x, int stride, int row, Floats values[][PANEL / W]) const {
        constexpr int V = vectors(ROWS);
        x += size_t(row) * stride;
        const float* w = reinterpret_cast<const float*>(weights_) + size_t(panel) * inputs_;
        const uint8_t* next = ahead<ROWS>(w, inputs_, row, v);
        w += v * W;
        Floats total[ROWS][V] = {};
        for (int i = 0; i < inputs_; i++, w += PANEL, next += LINE) {
            __builtin_prefetch(next);
#pragma GCC unroll 8  // without this early unrolling, the sums are kept in memory
            for (int c = 0; c < V; c++) {
                const Floats weights = simd::load(w + c * W);
#pragma GCC unroll 8
                for (int r = 0; r < ROWS; r++) total[r][c] += weights * x[size_t(r) * stride + i];
            }
        }
#pragma GCC unroll 8
        for (int r = 0; r < ROWS; r++)
#pragma GCC unroll 8
            for (int c = 0; c < V; c++)
                values[r][v + c] = total[r][c] + simd::load(bias_ + panel + (v + c) * W);
    }

    template <int ROWS>
    void multiply_bytes(int panel, int v, const QuantisedRows& q, int row, Floats values[][PANEL / W]) const {
        constexpr int V = vectors(ROWS);
        const uint8_t* w = weights_ + size_t(panel) * inputs_;
        const uint8_t* next = ahead<ROWS>(w, inputs_ / 4, row, v);
        w += v * W * 4;
        const int8_t* x = q.row(row);
        const size_t stride = q.stride();
        Ints total[ROWS][V] = {};
        for (int i = 0; i < inputs_; i += 4, w += STEP, next += LINE) {
            __builtin_prefetch(next);
#pragma GCC unroll 8
            for (int c = 0; c < V; c++)
#pragma GCC unroll 8
                for (int r = 0; r < ROWS; r++)
                    total[r][c] = simd::multiply_bytes(total[r][c], w + c * W * 4, x + r * stride + i);
        }
#pragma GCC unroll 8
        for (int r = 0; r < ROWS; r++)
#pragma GCC unroll 8
            for (int c = 0; c < V; c++) {
                const int at = panel + (v + c) * W;
                const Floats exact = simd::as_floats(total[r][c] - simd::OFFSET * q.sum(row + r));
                values[r][v + c] = exact * (simd::load(scales_ + at) * q.scale(row + r)) + simd::load(bias_ + at);
            }
    }

    void pack_floats(const float* row, int inputs, int output, float* to) const {
        to += size_t(output / PANEL) * inputs_ * PANEL + output % PANEL;
        for (int i = 0; i < inputs; i++) to[size_t(i) * PANEL] = row[i];
    }

    // Pack the weights of one output. Returns its scale.
    float pack_bytes(const float* row, int inputs, int output, uint8_t* to) const {
        to += size_t(output / PANEL) * inputs_ * PANEL + output % PANEL * 4;
        return quantise_weights(row, inputs, [=](int i, int byte) {
            to[size_t(i / 4) * PANEL * 4 + i % 4] = uint8_t(simd::OFFSET + byte);
        });
    }

    int inputs_ = 0, outputs_ = 0;
    bool int8_ = false;
    const uint8_t* weights_ = nullptr;
    const float *scales_ = nullptr, *bias_ = nullptr;
    Buffer<uint8_t> own_;  // memory of the weights, if no Memory holds them
};

// LayerNorm over the first `width` numbers of a row.
struct Norm {
    const float *weight, *bias;
    float epsilon;

    void apply(const float* x, float* out, int width) const {
        Floats total{}, squares{};
        float rest = 0, rest_squares = 0;
        const int whole = width / W * W;
        for (int i = 0; i < whole; i += W) total += simd::load(x + i);
        for (int i = whole; i < width; i++) rest += x[i];
        const float mean = (simd::sum(total) + rest) / float(width);
        for (int i = 0; i < whole; i += W) {
            const Floats centred = simd::load(x + i) - mean;
            squares += centred * centred;
        }
        for (int i = whole; i < width; i++) rest_squares += (x[i] - mean) * (x[i] - mean);
        const float inverse = 1.0f / std::sqrt((simd::sum(squares) + rest_squares) / float(width) + epsilon);
        for (int i = 0; i < whole; i += W)
            simd::store(out + i, (simd::load(x + i) - mean) * inverse * simd::load(&weight[i]) + simd::load(&bias[i]));
        for (int i = whole; i < width; i++) out[i] = (x[i] - mean) * inverse * weight[i] + bias[i];
    }
};

enum class Activation : int32_t { relu = 0, gelu = 1, swish = 2 };

inline Floats activate(Activation kind, Floats v) {
    if (kind == Activation::relu) return simd::maximum(Floats{}, v);  // in this order NaN stays NaN
    if (kind == Activation::swish) return v / (1.0f + simd::exponential(-simd::maximum(simd::all(-87.0f), v)));
    // x Phi(x) with erf by Abramowitz and Stegun 7.1.26, whose error is at most 1.5e-7.
    const Floats z = simd::magnitude(v) * 0.70710678118654752f;
    const Floats t = 1.0f / (z * 0.3275911f + 1.0f);
    const Floats poly = ((((t * 1.061405429f - 1.453152027f) * t + 1.421413741f) * t - 0.284496736f) * t
                         + 0.254829592f) * t;
    const Floats tail = poly * simd::exponential(-z * z) * 0.5f;  // 1 - Phi(|v|)
    return v * (v > Floats{} ? 1.0f - tail : tail);
}

}  // namespace mt
