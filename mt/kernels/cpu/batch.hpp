// Batch of sentences. Each sentence has its own search, its own step and its own cache, so that joining, leaving and
// reordering copy no cache, and sentences of different beam sizes share the matrix products of a step.
#pragma once

#include "encoder.hpp"
#include "search.hpp"
#include "shortlist.hpp"
#include "terms.hpp"

namespace mt {

// Keys and values that the beams of a sentence have written, in blocks of steps. Reordering beams copies nothing:
// `ancestors` has, for each beam and step, the beam that wrote the keys and values that the beam reads.
class History {
  public:
    History(const Model& model, int beams)
        : layers_(model.config.decoder_layers), beams_(beams), d_model_(model.config.d_model), now_(beams) {}

    // Address of the keys and values that a beam wrote at a step, to which `keys(layer)` or `values(layer)` is added.
    float* place(int step, int beam) {
        return blocks_[step / STEPS].get() + (size_t(step % STEPS) * beams_ + beam) * d_model_;
    }
    size_t keys(int layer) const { return size_t(layer) * 2 * STEPS * beams_ * d_model_; }
    size_t values(int layer) const { return keys(layer) + size_t(STEPS) * beams_ * d_model_; }

    // The addresses that a beam reads, from its first step to this step.
    void follow(int step, int beam, std::vector<const float*>& places) {
        for (int t = 0; t <= step; t++) places.push_back(place(t, ancestors_[size_t(t) * beams_ + beam]));
    }

    // Record that all beams write at this step.
    void open(int step) {
        if (size_t(step) / STEPS >= blocks_.size()) {
            blocks_.emplace_back();
            blocks_.back().reserve(size_t(layers_) * 2 * STEPS * beams_ * d_model_, false);
        }
        ancestors_.resize(size_t(step + 1) * beams_);
        for (int b = 0; b < beams_; b++) ancestors_[size_t(step) * beams_ + b] = uint16_t(b);
    }

    // After `steps` steps, beam b continues the history of beam parents[b].
    void reorder(int steps, const int* parents) {
        for (int t = 0; t < steps; t++) {
            uint16_t* line = &ancestors_[size_t(t) * beams_];
            for (int b = 0; b < beams_; b++) now_[b] = line[parents[b]];
            std::copy(now_.begin(), now_.end(), line);
        }
    }

  private:
    static constexpr int STEPS = 16;  // steps of a block

    int layers_, beams_, d_model_;
    std::vector<Buffer<float>> blocks_;
    std::vector<uint16_t> ancestors_, now_;
};

struct Sentence {
    Sentence(const Model& model, int length, const SearchParams& params, const int32_t* prefix)
        : length(length), history(model, params.beams), search(params, prefix, model.config) {
    }

    // Result of the output layer that the next step needs.
    enum Need { CANDIDATES, NOTHING, LOGITS };
    Need need() const {
        if (terms) return LOGITS;
        return search.forced() ? NOTHING : CANDIDATES;
    }

    // Attention [length] of a beam at a step to the source: the mean over the heads of the layer that aligns.
    float* attention(int step, int beam) {
        const size_t place = (size_t(step) * search.beams() + beam) * length;
        if (place + length > attentions.size()) attentions.resize(size_t(step + 1) * search.beams() * length);
        return &attentions[place];
    }

    int length;            // tokens of the source
    Outputs own;           // with a shortlist: its output layer, without tokens that are always allowed
    bool limited = false;  // whether the shortlist limits the tokens of this sentence
    Buffer<float> memory;  // cross-attention: SharedKeys of each layer
    History history;
    std::vector<float> attentions;
    int step = 0;
    BeamSearch search;
    std::unique_ptr<TermSearch> terms;  // if the translation must contain some words, or must not contain others
};

// A row of the decoder: one beam of one sentence.
struct Row {
    Sentence* sentence;
    int beam, token;
    size_t places = 0;  // index of the first address of its history
};

class Batch {
  public:
    // With a shortlist, `advance` uses only its tokens; `logits` always uses the whole vocabulary.
    Batch(const Model& model, const Shortlist* shortlist) : model_(model), shortlist_(shortlist) { model_.batches++; }
    Batch(const Batch&) = delete;
    ~Batch() { model_.batches--; }

    // Encode `count` sources and append their sentences. Ids and prefixes of all sentences are concatenated.
    void join(int count, const int32_t* ids, const int32_t* lengths, const SearchParams* params,
              const int32_t* prefixes) {
        check(count, ids, lengths, params, prefixes);
        const Teamwork teamwork(model_);
        for (int end = 0, s = 0; s < count; s = end) {
            int rows = 0;
            while (end < count && (end == s || rows + lengths[end] <= CHUNK)) rows += lengths[end++];
            join_chunk(rows, end - s, ids, lengths + s, params + s, prefixes);
            ids += rows;
            for (; s < end; s++) prefixes += params[s].prefix;
        }
    }

    // Require and forbid words in the translation of a sentence that has just joined.
    void require(int place, const TermTables& tables) {
        Sentence& sentence = *sentences_[place];
        sentence.terms = std::make_unique<TermSearch>(tables, sentence.search.beams(), model_.config);
    }

    // Move the sentences of another batch to the end of this batch.
    void extend(Batch& other) {
        for (auto& sentence : other.sentences_) sentences_.push_back(std::move(sentence));
        other.sentences_.clear();
    }

    // Keep these sentences, in this order.
    void select(int count, const int32_t* places) {
        std::vector<std::unique_ptr<Sentence>> kept;
        for (int i = 0; i < count; i++) kept.push_back(std::move(sentences_[places[i]]));
        sentences_ = std::move(kept);
    }

    // Append one token to every beam of every unfinished sentence.
    void advance() {
        size_t ends[3];
        rows_.clear();
        for (const int need : {Sentence::CANDIDATES, Sentence::NOTHING, Sentence::LOGITS}) {
            for (auto& sentence : sentences_)
                if (!sentence->search.finished() && sentence->need() == need)
                    for (int b = 0; b < sentence->search.beams(); b++)
                        if (sentence->search.alive(b))
                            rows_.push_back({sentence.get(), b, sentence->search.token(b), 0});
            ends[need] = rows_.size();
        }
        if (rows_.empty()) return;
        const Teamwork teamwork(model_);
        const float* states = decode();
        candidates_.resize(std::max(candidates_.size(), rows_.size()));
        advance_by_candidates(states, ends[Sentence::CANDIDATES]);
        for (size_t r = ends[Sentence::CANDIDATES]; r < ends[Sentence::NOTHING]; r++) {
            if (r + 1 < rows_.size() && rows_[r + 1].sentence == rows_[r].sentence) continue;
            rows_[r].sentence->search.force();
            close_step(*rows_[r].sentence);
        }
        if (ends[Sentence::NOTHING] < rows_.size()) advance_by_logits(states, ends[Sentence::NOTHING]);
    }

    // For searches outside of the library: append tokens [R] to all rows, and write the logits [R, vocabulary] of the
    // next tokens.
    void logits(const int32_t* tokens, float* out) {
        rows_.clear();
        for (auto& sentence : sentences_)
            for (int b = 0; b < sentence->search.beams(); b++)
                rows_.push_back({sentence.get(), b, checked_id(*tokens++, model_.target()), 0});
        write_logits(decode(), 0, out, model_.config.vocabulary);
        for (auto& sentence : sentences_) sentence->step++;
    }

    // Row r continues row rows[r], which must be of the same sentence.
    void reorder(const int64_t* rows) {
        int64_t first = 0;  // first row of the sentence
        for (auto& sentence : sentences_) {
            std::vector<int> parents(sentence->search.beams());
            for (int& parent : parents) parent = int(*rows++ - first);
            sentence->history.reorder(sentence->step, parents.data());
            first += parents.size();
        }
    }

    Sentence& sentence(int place) { return *sentences_[place]; }
    std::vector<Hypothesis> results(int place) const {
        return sentences_[place]->search.results(sentences_[place]->terms != nullptr);
    }

    // Write the attention of a hypothesis, [its tokens and EOS, length of the source].
    void write_attention(int place, const Hypothesis& hypothesis, float* out) {
        Sentence& sentence = *sentences_[place];
        for (size_t step = 0; step < hypothesis.beams.size(); step++)
            out = std::copy_n(sentence.attention(int(step), hypothesis.beams[step]), sentence.length, out);
    }
    int size() const { return int(sentences_.size()); }

  private:
    // Write the logits of the rows from `begin` on. The rows are `stride` numbers apart; the stride is at least the size
    // of the vocabulary.
    void write_logits(const float* states, size_t begin, float* out, int stride) {
        const int vocabulary = model_.config.vocabulary;
        model_.output.linear.apply(states + begin * model_.width, model_.width, int(rows_.size() - begin),
                                   workspace(),
                                   [&](int row, int first, const Floats* values) {
                                       float line[PANEL];
                                       for (int v = 0; v < PANEL / W; v++) simd::store(line + v * W, values[v]);
                                       std::copy(line, line + std::min(PANEL, vocabulary - first),
                                                 out + size_t(row) * stride + first);
                                   });
    }

    void close_step(Sentence& sentence) {
        sentence.history.reorder(++sentence.step, sentence.search.parents());
    }

    // A step of the searches that need the best tokens only: those of the first `count` rows.
    void advance_by_candidates(const float* states, size_t count) {
        const auto reset = [&](size_t r) {
            const BeamSearch& search = rows_[r].sentence->search;
            candidates_[r].reset(search.beams(), search.repeats(rows_[r].beam));
        };
        for (size_t r = 0; r < count; r++) reset(r);
        if (count) offer(shortlist_ ? shortlist_->always : model_.output, states, 0, count);
        for (size_t r = 0, end = 0; r < count; r = end) {
            Sentence& sentence = *rows_[r].sentence;
            while (end < count && rows_[end].sentence == &sentence) end++;
            if (sentence.limited) {
                offer(sentence.own, states, r, end);
            } else if (shortlist_) {
                for (size_t c = r; c < end; c++) reset(c);
                offer(model_.output, states, r, end);
            }
            for (size_t c = r; c < end; c++) candidates_[c].close();
            sentence.search.advance(&candidates_[r]);
            close_step(sentence);
        }
    }

    // A step of the searches with terms, which need all logits: those of the rows from `begin` on.
    void advance_by_logits(const float* states, size_t begin) {
        const int stride = padded(model_.config.vocabulary);
        float* logits = logits_.reserve((rows_.size() - begin) * stride);
        write_logits(states, begin, logits, stride);
        std::vector<float*> rows;
        for (size_t r = begin, end = begin; r < rows_.size(); r = end) {
            Sentence& sentence = *rows_[r].sentence;
            rows.assign(sentence.search.beams(), nullptr);
            for (; end < rows_.size() && rows_[end].sentence == &sentence; end++, logits += stride)
                rows[rows_[end].beam] = logits;
            sentence.terms->advance(sentence.search, rows);
            close_step(sentence);
        }
    }

    // Apply an output layer to rows [begin, end) of the states, and offer the logits to the candidates of the rows.
    void offer(const Outputs& outputs, const float* states, size_t begin, size_t end) {
        Candidates* candidates = &candidates_[begin];
        const float* from = states + begin * model_.width;
        const int rows = int(end - begin), stride = outputs.linear.outputs();
        if (Team* team = workspace().team) {  // a row's candidates need the panels in order, so rows are split
            float* logits = logits_.reserve(size_t(rows) * stride, false);
            outputs.linear.apply(from, model_.width, rows, workspace(), Model::storing(logits, stride));
            team->run(rows, [&](int row) { candidates[row].take_logits(logits + size_t(row) * stride, outputs); });
        } else {
            outputs.linear.apply(from, model_.width, rows, workspace(), [&](int row, int first, const Floats* values) {
                candidates[row].offer(first, values, outputs);
            });
        }
    }

    void check(int count, const int32_t* ids, const int32_t* lengths, const SearchParams* params,
               const int32_t* prefixes) const {
        check_sources(model_, count, ids, lengths);
        for (int s = 0; s < count; s++) {
            if (params[s].beams < 1 || params[s].beams > UINT16_MAX)
                throw std::invalid_argument("beams must be from 1 to 65535");
            for (int i = 0; i < params[s].prefix; i++) checked_id(*prefixes++, model_.target());
        }
    }

    void join_chunk(int rows, int count, const int32_t* ids, const int32_t* lengths, const SearchParams* params,
                    const int32_t* prefixes) {
        const float* encoded = encode(model_, rows, count, ids, lengths);
        const size_t first = sentences_.size();
        for (int s = 0; s < count; prefixes += params[s++].prefix)
            sentences_.push_back(std::make_unique<Sentence>(model_, lengths[s], params[s], prefixes));
        for (int s = 0; s < count; s++)
            sentences_[first + s]->memory.reserve(memory_size(model_, lengths[s]), false);
        write_memory(model_, encoded, rows, count, lengths,
                     [&](int s) { return sentences_[first + s]->memory.get(); });
        if (!shortlist_) return;
        for (int s = 0; s < count; ids += lengths[s++]) {
            Sentence& sentence = *sentences_[first + s];
            sentence.limited = !shortlist_->allows_all(ids, lengths[s]);
            if (sentence.limited) sentence.own = shortlist_->of(ids, lengths[s]);
        }
    }

    // Decode the newest token of each row in rows_. Returns states [R, width].
    const float* decode() {
        const int d = model_.config.d_model, heads = model_.config.heads, rows = int(rows_.size()), width = model_.width;
        const int aligning = std::max(int(model_.decoder_layers.size()) - 2, 0);  // see mt/scoring/attention.py
        float* x = model_.activations(workspace().x, rows);
        places_.clear();
        for (int r = 0; r < rows; r++) {
            Row& row = rows_[r];
            History& history = row.sentence->history;
            const int step = row.sentence->step;
            model_.target().write(row.token, step, x + size_t(r) * width);
            if (r == 0 || row.sentence != rows_[r - 1].sentence) history.open(step);
            row.places = places_.size();
            history.follow(step, row.beam, places_);
        }
        for (int index = 0; index < int(model_.decoder_layers.size()); index++) {
            const DecoderLayer& layer = model_.decoder_layers[index];
            model_.attend(layer.self_attention, x, rows, workspace(), [&](const float* projected, int wide, float* attended) {
                for (int r = 0; r < rows; r++) {
                    const float* from = projected + size_t(r) * wide;
                    const Row& row = rows_[r];
                    History& history = row.sentence->history;
                    const int step = row.sentence->step;
                    const size_t keys = history.keys(index), values = history.values(index);
                    float* own = history.place(step, row.beam);
                    std::copy(from + d, from + 2 * d, own + keys);
                    std::copy(from + 2 * d, from + 3 * d, own + values);
                    attend_to_scattered(from, &places_[row.places], keys, values, step + 1, d, heads, workspace().scores,
                                        attended + size_t(r) * width);
                }
            });
            model_.attend(layer.cross_attention, x, rows, workspace(), [&](const float* queries, int wide, float* attended) {
                for (int r = 0, end = 0; r < rows; r = end) {
                    Sentence& sentence = *rows_[r].sentence;
                    while (end < rows && rows_[end].sentence == &sentence) end++;
                    float* weights = nullptr;
                    if (index == aligning) weights = weights_.reserve(size_t(heads) * (end - r) * sentence.length, false);
                    SharedKeys::attend(sentence.memory.get() + index * SharedKeys::size(sentence.length, d),
                                       queries + size_t(r) * wide, wide, end - r, sentence.length, d, heads,
                                       workspace().scores, attended + size_t(r) * width, width, weights);
                    if (weights) record_attention(r, end, weights);
                }
            });
            model_.feed(layer.feed_forward, x, rows, workspace());
        }
        model_.close_decoder(x, rows);
        return x;
    }

    // Store the mean over the heads of `weights` [heads, rows, length], those of rows [begin, end) of a sentence.
    void record_attention(int begin, int end, const float* weights) {
        Sentence& sentence = *rows_[begin].sentence;
        const size_t head = size_t(end - begin) * sentence.length;
        const float share = 1.0f / float(model_.config.heads);
        for (int r = begin; r < end; r++, weights += sentence.length) {
            float* mean = sentence.attention(sentence.step, rows_[r].beam);
            std::fill_n(mean, sentence.length, 0.0f);
            for (int h = 0; h < model_.config.heads; h++)
                for (int t = 0; t < sentence.length; t++) mean[t] += weights[h * head + t] * share;
        }
    }

    const Model& model_;
    const Shortlist* const shortlist_;
    std::vector<std::unique_ptr<Sentence>> sentences_;
    std::vector<Row> rows_;
    std::vector<const float*> places_;
    std::vector<Candidates> candidates_;
    Buffer<float> logits_;  // for searches that need all logits
    Buffer<float> weights_;  // attention weights of a sentence in one layer
};

}  // namespace mt
