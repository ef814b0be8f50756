// Packed weights of an encoder-decoder (mt/model/transformer.py), and its layers over packed rows. The sentences of a
// batch are concatenated without padding, because only attention depends on where a sentence ends.
#pragma once

#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>

#include "linear.hpp"

namespace mt {

constexpr int CHUNK = 96;  // rows whose activations stay in a core's cache

// Equal to KernelConfig of mt/kernels/structs.py.
struct Config {
    int32_t d_model, d_ff, heads, encoder_layers, decoder_layers, vocabulary, positions;
    int32_t pre_norm, activation, int8;
    int32_t pad, unk, bos, eos;
    float scale, norm_epsilon;
};

// The tensors of a state_dict by name. They are read once, when a model is built in memory that is not ready.
class Tensors {
  public:
    void add(const char* name, Tensor tensor) { tensors_[name] = tensor; }
    bool has(const std::string& name) const { return tensors_.count(name) > 0; }
    int64_t rows(const std::string& name) const { return has(name) ? tensors_.at(name).rows : 0; }
    Tensor get(const std::string& name, int64_t rows, int64_t columns) const {
        const auto at = tensors_.find(name);
        if (at == tensors_.end()) throw std::invalid_argument(name + " is missing");
        if (at->second.rows != rows || at->second.columns != columns)
            throw std::invalid_argument(name + " has another shape than the configuration says");
        return at->second;
    }

  private:
    std::map<std::string, Tensor> tensors_;
};

struct FeedForward {
    Norm norm;
    Linear inner, outer;
};

// `input` computes queries, keys and values of self-attention together, [3 D]; for cross-attention only the queries.
struct Attention {
    Norm norm;
    Linear input, output;
};

struct EncoderLayer {
    Attention attention;
    FeedForward feed_forward;
};

struct DecoderLayer {
    Attention self_attention, cross_attention;
    Linear memory;  // keys and values of cross-attention, [2 D]
    FeedForward feed_forward;
};

// An output layer over a vocabulary, or a part of it.
struct Outputs {
    Outputs() = default;
    Outputs(Linear linear, std::vector<int32_t> ids, const Config& config)
        : linear(std::move(linear)), ids(std::move(ids)), eos(place(config.eos)),
          never{place(config.pad), place(config.unk), place(config.bos), eos} {}

    int size() const { return int(ids.size()); }

    Linear linear;
    std::vector<int32_t> ids;        // the token of each output, ascending
    int eos = -1;                    // index of the output of EOS, or -1
    int never[4] = {-1, -1, -1, -1};  // indices of the outputs that no hypothesis may contain, or -1

  private:
    int place(int id) const {
        const auto at = std::lower_bound(ids.begin(), ids.end(), id);
        return at != ids.end() && *at == id ? int(at - ids.begin()) : -1;
    }
};

// The embeddings of a vocabulary, scaled. With int8, each embedding is bytes with a scale.
class TokenVectors {
  public:
    TokenVectors(const Tensor& tokens, const Config& config, Memory& memory)
        : scale_(config.scale), size_(int(tokens.rows)), d_model_(int(tokens.columns)) {
        const size_t count = size_t(size_) * d_model_;
        float* floats = memory.take<float>(config.int8 ? size_ : count);
        int8_t* bytes = config.int8 ? memory.take<int8_t>(count) : nullptr;
        floats_ = floats, bytes_ = bytes;
        if (!memory.wanted()) return;
        std::vector<float> scratch;
        for (int token = 0; token < size_; token++) {
            const float* row = tokens.row(token, scratch);
            int8_t* to = bytes + size_t(token) * d_model_;
            if (!bytes) std::copy(row, row + d_model_, floats + size_t(token) * d_model_);
            else floats[token] = quantise_weights(row, d_model_, [=](int i, int byte) { to[i] = int8_t(byte); });
        }
    }

    int size() const { return size_; }

    // out = the token's vector + p
    void add(int token, const float* p, float* out) const {
        if (!bytes_) {
            const float* e = floats_ + size_t(token) * d_model_;
            for (int i = 0; i < d_model_; i++) out[i] = e[i] * scale_ + p[i];
        } else {
            const int8_t* e = bytes_ + size_t(token) * d_model_;
            for (int i = 0; i < d_model_; i++) out[i] = float(e[i]) * floats_[token] * scale_ + p[i];
        }
    }

  private:
    const float* floats_;  // the vectors, or the scales of the bytes
    const int8_t* bytes_;
    float scale_;
    int size_, d_model_;
};

// Input of one side: the sum of token vector and position, then a norm, if the model has one there.
class Embedding {
  public:
    Embedding(std::shared_ptr<const TokenVectors> tokens, const Tensor& positions, std::optional<Norm> norm,
              Memory& memory)
        : tokens_(std::move(tokens)), positions_(memory.keep(positions.data, positions.rows * positions.columns)),
          norm_(std::move(norm)), last_(int(positions.rows) - 1), d_model_(int(positions.columns)) {}

    int size() const { return tokens_->size(); }  // size of the vocabulary

    void write(int token, int position, float* out) const {
        tokens_->add(token, positions_ + size_t(std::min(position, last_)) * d_model_, out);
        if (norm_) norm_->apply(out, out, d_model_);
    }

  private:
    std::shared_ptr<const TokenVectors> tokens_;
    const float* positions_;
    std::optional<Norm> norm_;
    int last_, d_model_;
};

class Model {
  public:
    // The memory must outlive the model.
    Model(const Config& config, const Tensors& tensors, const Memory& memory)
        : config(config), width(padded(config.d_model)), memory_(memory) {
        const int d = config.d_model;
        const Tensor tokens = tensors.get("embedding.tokens.weight", config.vocabulary, d);
        const auto shared = std::make_shared<const TokenVectors>(tokens, config, memory_);
        const std::string own = "source_embedding.tokens.weight";
        const auto own_source =
            tensors.has(own) ? std::make_shared<const TokenVectors>(tensors.get(own, tensors.rows(own), d), config, memory_)
                             : shared;
        source_.emplace(embedding(tensors, own_source, "source_input."));
        target_.emplace(embedding(tensors, shared, "target_input."));
        std::vector<int32_t> all(config.vocabulary);
        std::iota(all.begin(), all.end(), 0);
        const bool untied = tensors.has("embedding.output");
        const Tensor weights = untied ? tensors.get("embedding.output", config.vocabulary, d) : tokens;
        std::vector<Tensor> bias;
        if (tensors.has("embedding.bias")) bias.push_back(tensors.get("embedding.bias", 1, config.vocabulary));
        output = Outputs(Linear({weights}, bias, config.int8, memory_), std::move(all), config);
        for (int i = 0; i < config.encoder_layers; i++) {
            const std::string name = "encoder.layers." + std::to_string(i) + ".";
            encoder_layers.push_back({self_attention(tensors, name), feed_forward(tensors, name)});
        }
        for (int i = 0; i < config.decoder_layers; i++) {
            const std::string name = "decoder.layers." + std::to_string(i) + ".";
            const std::string cross = name + "cross_attention.";
            decoder_layers.push_back({
                self_attention(tensors, name),
                {norm(tensors, name + "around_cross_attention.norm"), stacked(tensors, cross, {"query"}),
                 stacked(tensors, cross, {"output"})},
                stacked(tensors, cross, {"key", "value"}),
                feed_forward(tensors, name),
            });
        }
        if (config.pre_norm) {
            encoder_norm_ = norm(tensors, "encoder.norm");
            decoder_norm_ = norm(tensors, "decoder.norm");
        }
    }

    // Return room for rows of activations. The padding of rows is set to zero, because another model, or a sentence
    // with NaN scores, may have used the buffer.
    float* activations(Buffer<float>& buffer, int rows) const {
        float* x = buffer.reserve(size_t(rows) * width);
        if (width != config.d_model) std::fill(x, x + size_t(rows) * width, 0.0f);
        return x;
    }

    // Return a function that stores the outputs of a linear layer, or that adds them to the present values.
    static auto storing(float* out, int stride) {
        return [=](int row, int first, const Floats* values) {
            for (int v = 0; v < PANEL / W; v++) simd::store(out + size_t(row) * stride + first + v * W, values[v]);
        };
    }
    static auto adding(float* x, int stride) {
        return [=](int row, int first, const Floats* values) {
            float* to = x + size_t(row) * stride + first;
            for (int v = 0; v < PANEL / W; v++) simd::store(to + v * W, simd::load(to + v * W) + values[v]);
        };
    }

    // Apply a sublayer to x [rows, width]. `between` computes attention from projected rows [rows, input.outputs()].
    template <typename Between>
    void attend(const Attention& layer, float* x, int rows, Workspace& work, Between&& between) const {
        const float* input = before(layer.norm, x, rows, work);
        const int wide = layer.input.outputs();
        float* projected = work.projected.reserve(size_t(rows) * wide);
        layer.input.apply(input, width, rows, work, storing(projected, wide));
        float* attended = activations(work.attended, rows);
        between(projected, wide, attended);
        layer.output.apply(attended, width, rows, work, adding(x, width));
        after(layer.norm, x, rows);
    }

    void feed(const FeedForward& layer, float* x, int rows, Workspace& work) const {
        for (int first = 0; first < rows; first += CHUNK)
            feed_chunk(layer, x + size_t(first) * width, std::min(CHUNK, rows - first), work);
    }

    // Apply the last norm of a pre-norm stack in place.
    void close_encoder(float* x, int rows) const { close(encoder_norm_, x, rows); }
    void close_decoder(float* x, int rows) const { close(decoder_norm_, x, rows); }

    const Config config;
    const int width;  // numbers of a row of activations: D, padded
    std::vector<EncoderLayer> encoder_layers;
    std::vector<DecoderLayer> decoder_layers;
    Outputs output;
    size_t memory_size() const { return memory_.size(); }
    const Embedding& source() const { return *source_; }
    const Embedding& target() const { return *target_; }

    // Let `helpers` threads help the thread that decodes the only batch of the model. They start when they are needed.
    void set_helpers(int helpers) { team_ = helpers > 0 ? std::make_unique<Team>(helpers) : nullptr; }
    Team* team() const { return batches == 1 ? team_.get() : nullptr; }
    mutable std::atomic<int> batches{0};  // number of Batch objects

  private:
    void feed_chunk(const FeedForward& layer, float* x, int rows, Workspace& work) const {
        const float* input = before(layer.norm, x, rows, work);
        const int wide = layer.inner.outputs();
        float* hidden = work.hidden.reserve(size_t(rows) * wide);
        const Activation kind = Activation(config.activation);
        layer.inner.apply(input, width, rows, work, [=](int row, int first, const Floats* values) {
            for (int v = 0; v < PANEL / W; v++)
                simd::store(hidden + size_t(row) * wide + first + v * W, activate(kind, values[v]));
        });
        layer.outer.apply(hidden, wide, rows, work, adding(x, width));
        after(layer.norm, x, rows);
    }

    const float* before(const Norm& norm, const float* x, int rows, Workspace& work) const {
        if (!config.pre_norm) return x;
        float* out = activations(work.normed, rows);
        normalise(norm, x, out, rows);
        return out;
    }

    void after(const Norm& norm, float* x, int rows) const {
        if (!config.pre_norm) normalise(norm, x, x, rows);
    }

    void close(const Norm& norm, float* x, int rows) const {
        if (config.pre_norm) normalise(norm, x, x, rows);
    }

    void normalise(const Norm& norm, const float* x, float* out, int rows) const {
        for (int r = 0; r < rows; r++) norm.apply(x + size_t(r) * width, out + size_t(r) * width, config.d_model);
    }

    // `layer` is the input layer of the side: its positions and its norm, if the model has them.
    Embedding embedding(const Tensors& tensors, std::shared_ptr<const TokenVectors> tokens,
                        const std::string& layer) {
        const std::string learned = layer + "positions.weight";
        const std::string positions = tensors.has(learned) ? learned : "embedding.positions";
        std::optional<Norm> after;
        if (tensors.has(layer + "norm.weight")) after = norm(tensors, layer + "norm");
        return Embedding(std::move(tokens), tensors.get(positions, config.positions, config.d_model), std::move(after),
                         memory_);
    }

    Norm norm(const Tensors& tensors, const std::string& name) {
        const int d = config.d_model;
        const Tensor weight = tensors.get(name + ".weight", 1, d), bias = tensors.get(name + ".bias", 1, d);
        return {memory_.keep(weight.data, d), memory_.keep(bias.data, d), config.norm_epsilon};
    }

    // Combine several D x D layers with the same input into one.
    Linear stacked(const Tensors& tensors, const std::string& name, std::vector<std::string> parts) {
        const int d = config.d_model;
        std::vector<Tensor> weights, biases;
        for (const std::string& part : parts) {
            weights.push_back(tensors.get(name + part + ".weight", d, d));
            biases.push_back(tensors.get(name + part + ".bias", 1, d));
        }
        return Linear(weights, biases, config.int8, memory_);
    }

    Attention self_attention(const Tensors& tensors, const std::string& layer) {
        const std::string name = layer + "self_attention.";
        return {norm(tensors, layer + "around_self_attention.norm"), stacked(tensors, name, {"query", "key", "value"}),
                stacked(tensors, name, {"output"})};
    }

    FeedForward feed_forward(const Tensors& tensors, const std::string& layer) {
        const std::string name = layer + "feed_forward.";
        const int d = config.d_model, wide = config.d_ff;
        return {norm(tensors, layer + "around_feed_forward.norm"),
                Linear({tensors.get(name + "inner.weight", wide, d)}, {tensors.get(name + "inner.bias", 1, wide)},
                       config.int8, memory_),
                Linear({tensors.get(name + "outer.weight", d, wide)}, {tensors.get(name + "outer.bias", 1, d)},
                       config.int8, memory_)};
    }

    Memory memory_;
    std::unique_ptr<Team> team_;
    std::optional<Embedding> source_, target_;
    Norm encoder_norm_{}, decoder_norm_{};
};

}  // namespace mt
