// The teacher-forced pass over pairs of a source and a target: the decoder reads all tokens of the target at once.
#pragma once

#include "encoder.hpp"

namespace mt {

// `count` pairs, with the concatenated ids of the sources and of the targets. Each target begins with BOS.
struct Pairs {
    int count;
    const int32_t *sources, *source_lengths, *targets, *target_lengths;
};

// Write the cross-attention weights of each pair, [layers, heads, target, source], one pair after another.
class CrossAttention {
  public:
    explicit CrossAttention(const Model& model) : model_(model) {}

    void write(Pairs pairs, float* out) {
        check(pairs);
        while (pairs.count) {
            int count = 0, sources = 0, targets = 0;
            while (count < pairs.count && (count == 0 || (sources + pairs.source_lengths[count] <= CHUNK &&
                                                          targets + pairs.target_lengths[count] <= CHUNK))) {
                sources += pairs.source_lengths[count];
                targets += pairs.target_lengths[count++];
            }
            Pairs chunk = pairs;
            chunk.count = count;
            out = write_chunk(chunk, sources, targets, out);
            pairs = {pairs.count - count, pairs.sources + sources, pairs.source_lengths + count, pairs.targets + targets,
                     pairs.target_lengths + count};
        }
    }

  private:
    void check(const Pairs& pairs) const {
        check_sources(model_, pairs.count, pairs.sources, pairs.source_lengths);
        const int32_t* id = pairs.targets;
        for (int p = 0; p < pairs.count; p++) {
            if (pairs.target_lengths[p] < 1) throw std::invalid_argument("a target is empty; it begins with BOS");
            for (int t = 0; t < pairs.target_lengths[p]; t++) checked_id(*id++, model_.target());
        }
    }

    // Returns the end of the written weights. The chunk has `sources` and `targets` ids.
    float* write_chunk(const Pairs& pairs, int sources, int targets, float* out) {
        const int d = model_.config.d_model, heads = model_.config.heads, width = model_.width;
        const size_t layers = model_.decoder_layers.size();
        std::vector<size_t> memory(pairs.count), weights(pairs.count + 1);
        size_t floats = 0;
        for (int p = 0; p < pairs.count; p++) {
            memory[p] = floats;
            floats += memory_size(model_, pairs.source_lengths[p]);
            weights[p + 1] = weights[p] + layers * layer_size(pairs, p);
        }
        float* keys = memory_.reserve(floats, false);
        const float* encoded = encode(model_, sources, pairs.count, pairs.sources, pairs.source_lengths);
        write_memory(model_, encoded, sources, pairs.count, pairs.source_lengths,
                     [&](int p) { return keys + memory[p]; });

        Workspace& work = workspace();
        float* x = model_.activations(work.x, targets);
        for (int p = 0, row = 0; p < pairs.count; p++)
            for (int t = 0; t < pairs.target_lengths[p]; t++, row++)
                model_.target().write(pairs.targets[row], t, x + size_t(row) * width);
        for (size_t index = 0; index < layers; index++) {
            const DecoderLayer& layer = model_.decoder_layers[index];
            model_.attend(layer.self_attention, x, targets, work, [&](const float* projected, int wide, float* attended) {
                attend_to_earlier(pairs, projected, wide, attended);
            });
            model_.attend(layer.cross_attention, x, targets, work, [&](const float* queries, int wide, float* attended) {
                for (int p = 0, row = 0; p < pairs.count; row += pairs.target_lengths[p++]) {
                    const int length = pairs.source_lengths[p];
                    SharedKeys::attend(keys + memory[p] + index * SharedKeys::size(length, d),
                                       queries + size_t(row) * wide, wide, pairs.target_lengths[p], length, d, heads,
                                       work.scores, attended + size_t(row) * width, width,
                                       out + weights[p] + index * layer_size(pairs, p));
                }
            });
            if (index + 1 < layers) model_.feed(layer.feed_forward, x, targets, work);
        }
        return out + weights[pairs.count];
    }

    // Self-attention: each row attends to the rows of its target up to and including itself.
    void attend_to_earlier(const Pairs& pairs, const float* projected, int wide, float* attended) {
        const int d = model_.config.d_model;
        for (int p = 0, row = 0; p < pairs.count; p++) {
            places_.clear();
            for (int t = 0; t < pairs.target_lengths[p]; t++, row++) {
                places_.push_back(projected + size_t(row) * wide);
                attend_to_scattered(places_.back(), places_.data(), d, 2 * d, t + 1, d, model_.config.heads,
                                    workspace().scores, attended + size_t(row) * model_.width);
            }
        }
    }

    // Number of weights of a pair in one layer.
    size_t layer_size(const Pairs& pairs, int p) const {
        return size_t(model_.config.heads) * pairs.target_lengths[p] * pairs.source_lengths[p];
    }

    const Model& model_;
    Buffer<float> memory_;
    std::vector<const float*> places_;
};

}  // namespace mt
