// The encoder over packed rows, and the keys and values that the decoder's cross-attention reads.
#pragma once

#include "attention.hpp"
#include "model.hpp"

namespace mt {

// The buffers of this thread. Without them, each batch of one sentence that is about to join another would allocate
// some.
inline Workspace& workspace() {
    static thread_local Workspace buffers;
    return buffers;
}

// While this object exists, the helpers of the model work for this thread, if the model has no other batch.
class Teamwork {
  public:
    explicit Teamwork(const Model& model) : call_(model.team()) { workspace().team = call_.team; }
    ~Teamwork() { workspace().team = nullptr; }

  private:
    const Team::Call call_;
};

// Return `id` if it belongs to the vocabulary. Throws std::out_of_range otherwise.
inline int checked_id(int id, const Embedding& embedding) {
    if (id < 0 || id >= embedding.size()) throw std::out_of_range("an id is outside of the vocabulary");
    return id;
}

// Check `count` sources, whose ids are concatenated. Throws an exception if a source cannot be encoded.
inline void check_sources(const Model& model, int count, const int32_t* ids, const int32_t* lengths) {
    for (int s = 0; s < count; s++) {
        if (lengths[s] < 1) throw std::invalid_argument("a source is empty; even an empty text ends with EOS");
        if (lengths[s] > model.config.positions)
            throw std::invalid_argument("a source is longer than the model has positions");
        for (int i = 0; i < lengths[s]; i++) checked_id(*ids++, model.source());
    }
}

// Encode `count` sources of `rows` ids in total. The result [rows, width] is in the workspace.
inline float* encode(const Model& model, int rows, int count, const int32_t* ids, const int32_t* lengths) {
    Workspace& work = workspace();
    const int d = model.config.d_model;
    float* x = model.activations(work.x, rows);
    for (int s = 0, row = 0; s < count; s++)
        for (int i = 0; i < lengths[s]; i++, row++) model.source().write(ids[row], i, x + size_t(row) * model.width);
    for (const EncoderLayer& layer : model.encoder_layers) {
        model.attend(layer.attention, x, rows, work, [&](const float* projected, int wide, float* attended) {
            int r = 0;
            for (int s = 0; s < count; s++) {
                float* memory = work.memory.reserve(SharedKeys::size(lengths[s], d));
                SharedKeys::fill(memory, projected + size_t(r) * wide + d, wide, lengths[s], d);
                SharedKeys::attend(memory, projected + size_t(r) * wide, wide, lengths[s], lengths[s], d,
                                   model.config.heads, work.scores, attended + size_t(r) * model.width, model.width);
                r += lengths[s];
            }
        });
        model.feed(layer.feed_forward, x, rows, work);
    }
    model.close_encoder(x, rows);
    return x;
}

// Number of floats of the cross-attention keys and values of a source in all layers.
inline size_t memory_size(const Model& model, int length) {
    return model.decoder_layers.size() * SharedKeys::size(length, model.config.d_model);
}

// Write the cross-attention keys and values of all layers, given the encoder's output [rows, width] for `count` sources.
// `place(s)` is the memory of source s, `memory_size` floats.
template <typename Place>
void write_memory(const Model& model, const float* encoded, int rows, int count, const int32_t* lengths, Place&& place) {
    Workspace& work = workspace();
    const int d = model.config.d_model;
    for (size_t layer = 0; layer < model.decoder_layers.size(); layer++) {
        const Linear& linear = model.decoder_layers[layer].memory;
        const int wide = linear.outputs();
        float* projected = work.projected.reserve(size_t(rows) * wide);
        linear.apply(encoded, model.width, rows, work, Model::storing(projected, wide));
        for (int s = 0; s < count; s++) {
            SharedKeys::fill(place(s) + layer * SharedKeys::size(lengths[s], d), projected, wide, lengths[s], d);
            projected += size_t(lengths[s]) * wide;
        }
    }
}

}  // namespace mt
