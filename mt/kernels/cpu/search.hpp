// Beam search over one sentence, equal to mt/decoding/beam.py for a batch.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "model.hpp"

namespace mt {

// Search parameters of a sentence, equal to SearchParams of mt/kernels/structs.py. `beams` is the number of its decoder
// rows. Lengths count tokens with the final EOS. `prefix` is the number of forced first tokens. No n-gram of `ngram`
// tokens occurs twice; 0 allows all. A beam whose total is more than `margin` below the best of a step is dropped.
struct SearchParams {
    int32_t beams, longest, shortest, n_best, gnmt, prefix, ngram;
    double length_penalty, margin;
};

// Turn a row of logits, padded to whole vectors, into log-probabilities. Returns false if they are not finite.
inline bool normalise(float* row, const Config& config) {
    const int padded = whole_vectors(config.vocabulary), end = padded - W;
    simd::store(row + end, simd::first(simd::load(row + end), config.vocabulary - end, -INFINITY));
    Floats highest = simd::load(row);
    for (int i = W; i < padded; i += W) highest = simd::maximum(highest, simd::load(row + i));
    const float peak = simd::largest(highest);
    Floats total{};
    for (int i = 0; i < padded; i += W) total += simd::power_of_two((simd::load(row + i) - peak) * simd::LOG2_E);
    const float normalizer = peak + std::log(simd::sum(total));
    for (int i = 0; i < padded; i += W) simd::store(row + i, simd::load(row + i) - normalizer);
    return !std::isnan(row[config.eos]);
}

// Summary of a row's logits, which are offered panel by panel: the normaliser of their softmax, the score of EOS, and
// the best next tokens. If the row has a shortlist, only its tokens are offered.
class Candidates {
  public:
    // `banned` are tokens that must not be the next token.
    void reset(int wanted, std::vector<int32_t> banned) {
        peak_ = -INFINITY, total_ = Floats{}, eos_ = -INFINITY, wanted_ = wanted, banned_ = std::move(banned);
        scores_.assign(wanted, -INFINITY), tokens_.assign(wanted, 0);
    }

    void offer(int first, const Floats* values, const Outputs& outputs) {
        constexpr int count = PANEL / W;
        Floats masked[count];
        if (first + PANEL > outputs.size()) {
            std::copy(values, values + count, masked);
            for (int i = outputs.size() - first; i < PANEL; i++) masked[i / W][i % W] = -INFINITY;
            values = masked;
        }
        if (outputs.eos >= first && outputs.eos < first + PANEL) eos_ = at(values, outputs.eos - first);
        Floats highest = values[0];
        for (int c = 1; c < count; c++) highest = simd::maximum(highest, values[c]);
        normalise(values, highest);
        if (!simd::above(highest, simd::all(scores_.back()))) return;
        for (int c = 0; c < count; c++)
            for (unsigned bits = simd::above(values[c], simd::all(scores_.back())); bits; bits &= bits - 1) {
                const int place = c * W + __builtin_ctz(bits);
                const auto* end = std::end(outputs.never);
                const int token = outputs.ids[first + place];
                if (std::find(std::begin(outputs.never), end, first + place) == end &&
                    std::find(banned_.begin(), banned_.end(), token) == banned_.end())
                    insert(at(values, place), token);
            }
    }

    // The logits of a whole row, padded to whole panels.
    void take_logits(const float* row, const Outputs& outputs) {
        for (int first = 0; first < outputs.size(); first += PANEL) {
            Floats values[PANEL / W];
            for (int v = 0; v < PANEL / W; v++) values[v] = simd::load(row + first + v * W);
            offer(first, values, outputs);
        }
    }

    int size() const { return wanted_; }
    int token(int rank) const { return tokens_[rank]; }
    float log_probability(int rank) const { return scores_[rank] - peak_ - log_total_; }
    float eos() const { return eos_ - peak_ - log_total_; }
    void close() { log_total_ = std::log(simd::sum(total_)); }

  private:
    static float at(const Floats* v, int place) { return v[place / W][place % W]; }

    void normalise(const Floats* v, Floats highest) {
        if (simd::above(highest, simd::all(peak_))) {
            const float peak = simd::largest(highest);
            total_ *= simd::exponential(simd::all(peak_ - peak))[0];
            peak_ = peak;
        }
        const float peak = peak_ * simd::LOG2_E;
        for (int c = 0; c < PANEL / W; c++) total_ += simd::power_of_two(v[c] * simd::LOG2_E - peak);
    }

    // Among equal scores, the token that was offered first comes first; within a layer it has the lower id.
    void insert(float score, int token) {
        if (!(score > scores_.back())) return;
        int i = wanted_ - 1;
        for (; i > 0 && score > scores_[i - 1]; i--) scores_[i] = scores_[i - 1], tokens_[i] = tokens_[i - 1];
        scores_[i] = score, tokens_[i] = token;
    }

    float peak_ = 0, eos_ = 0, log_total_ = 0;
    int wanted_ = 0;
    Floats total_{};
    std::vector<float> scores_;
    std::vector<int> tokens_;
    std::vector<int32_t> banned_;
};

struct Hypothesis {
    std::vector<int32_t> tokens;                 // without BOS and EOS
    std::vector<float> token_log_probabilities;  // the last one is of EOS
    std::vector<int> beams;                      // the beam that predicted each token; the last one is of EOS
    float score, log_probability;
};

class BeamSearch {
  public:
    // `prefix` are the forced first tokens of every hypothesis.
    BeamSearch(const SearchParams& params, const int32_t* prefix, const Config& config)
        : beams_(params.beams), params_(params), prefix_(prefix, prefix + params.prefix), pool_(beams_, -INFINITY),
          tokens_(beams_, config.bos), parents_(beams_), totals_(beams_, -INFINITY) {
        totals_[0] = 0;  // before the first step all beams are equal, so only one continues
        std::iota(parents_.begin(), parents_.end(), 0);
    }

    // Take the step of a forced token. Its log-probability is 0, so no candidates are needed.
    void force() {
        std::fill(tokens_.begin(), tokens_.end(), prefix_[steps_]);
        record_best_ends(std::vector<float>(beams_, -INFINITY), true);
        steps_++;
    }

    // Take a step with given candidates. `leading` is the best total of the candidates that can keep the search
    // running. The search can end when it has `needed` finished hypotheses.
    void continue_with(std::vector<float> totals, std::vector<int> tokens, std::vector<int> parents,
                       std::vector<float> ends, float leading, int needed) {
        totals_ = std::move(totals), tokens_ = std::move(tokens), parents_ = std::move(parents);
        record_step(std::move(ends), leading, needed, steps_ < params_.longest - 1);
        steps_++;
    }

    // End the search, because scores are NaN.
    void fail() { failed_ = finished_ = true; }

    // The tokens of a beam, the newest first.
    std::vector<int32_t> written(int beam) const {
        std::vector<int32_t> tokens;
        for (int step = steps_; step-- > 0; beam = trail_[step].parents[beam])
            tokens.push_back(trail_[step].tokens[beam]);
        return tokens;
    }

    // The tokens that would repeat an n-gram of a beam's tokens (Paulus et al. 2018, section 2.5).
    std::vector<int32_t> repeats(int beam) const {
        std::vector<int32_t> banned;
        const int n = params_.ngram;
        if (n == 0 || steps_ < n) return banned;
        const std::vector<int32_t> written = this->written(beam);
        for (int at = 0; at + n <= steps_; at++)
            if (std::equal(written.begin(), written.begin() + n - 1, written.begin() + at + 1))
                banned.push_back(written[at]);
        return banned;
    }

    // The log-probabilities [vocabulary] of a beam's next tokens under the prefix or without repeated n-grams.
    void constrain(int beam, float* row, int vocabulary) const {
        if (forced()) {
            std::fill(row, row + vocabulary, -INFINITY);
            row[prefix_[steps_]] = 0;
            return;
        }
        for (const int id : repeats(beam)) row[id] = -INFINITY;
    }

    const SearchParams& params() const { return params_; }
    int beams() const { return beams_; }
    int steps() const { return steps_; }
    float total(int beam) const { return totals_[beam]; }
    float best_finished() const { return pool_[0]; }
    bool forced() const { return steps_ < params_.prefix; }
    bool may_end() const { return !forced() && steps_ >= std::min(params_.shortest, params_.longest) - 1; }
    bool finished() const { return finished_; }
    bool failed() const { return failed_; }
    bool alive(int beam) const { return totals_[beam] > -INFINITY; }
    int token(int beam) const { return tokens_[beam]; }
    const int* parents() const { return parents_.data(); }

    // Take a step from the candidates of the live beams, in the order of the beams.
    void advance(const Candidates* candidates) {
        const int last = params_.longest - 1;
        std::vector<Option> options;
        std::vector<float> ends(beams_, -INFINITY);
        for (int b = 0; b < beams_; b++) {
            if (!alive(b)) continue;
            const Candidates& next = *candidates++;
            failed_ |= std::isnan(next.eos());
            if (may_end()) ends[b] = next.eos() + totals_[b];
            for (int rank = 0; rank < next.size(); rank++)
                options.push_back({next.log_probability(rank) + totals_[b], next.token(rank), b});
        }
        finished_ = failed_;
        if (failed_) return;  // NaN cannot be sorted
        const size_t kept = std::min(options.size(), size_t(beams_));
        std::partial_sort(options.begin(), options.begin() + kept, options.end(),
                          [](const Option& a, const Option& b) { return a.total > b.total; });
        options.resize(beams_, {-INFINITY, 0, 0});
        for (int b = 0; b < beams_; b++)
            totals_[b] = options[b].total, tokens_[b] = options[b].token, parents_[b] = options[b].parent;
        const float best = std::max(totals_[0], *std::max_element(ends.begin(), ends.end()));
        record_best_ends(std::move(ends), steps_ < last);
        steps_++;
        for (float& total : totals_)
            if (total < best - float(params_.margin)) total = -INFINITY;
        finished_ |= !alive(0);
    }

    // The best finished hypotheses. Among equal scores, the hypothesis that was finished first comes first. If
    // `distinct` is true, each translation occurs once.
    std::vector<Hypothesis> results(bool distinct) const {
        std::vector<Hypothesis> hypotheses;
        if (failed_) return hypotheses;
        std::vector<End> ends;
        for (int step = 0; step < steps_; step++)
            for (int b = 0; b < beams_; b++)
                if (const float total = trail_[step].ends[b]; total > -INFINITY)
                    ends.push_back({total / penalty(step), step, b});
        std::stable_sort(ends.begin(), ends.end(), [](const End& a, const End& b) { return a.score > b.score; });
        ends.resize(std::min(ends.size(), size_t(distinct ? beams_ : params_.n_best)));
        for (const End& end : ends) {
            Hypothesis hypothesis = follow(end);
            const auto same = [&](const Hypothesis& other) { return other.tokens == hypothesis.tokens; };
            if (distinct && std::any_of(hypotheses.begin(), hypotheses.end(), same)) continue;
            if (hypotheses.size() < size_t(params_.n_best)) hypotheses.push_back(std::move(hypothesis));
        }
        return hypotheses;
    }

  private:
    struct Option {
        float total;
        int token, parent;
    };
    struct End {
        float score;
        int step, beam;
    };
    struct Step {  // result of a step: the beams that stayed alive, and the beams that ended
        std::vector<int> parents, tokens;
        std::vector<float> totals, ends;
    };

    float penalty(int step) const {
        const double n = step + 1;
        return float(std::pow(params_.gnmt ? (5 + n) / 6 : n, params_.length_penalty));
    }

    // Record the ends that are among the best `beams` continuations, or all ends if the search cannot continue.
    void record_best_ends(std::vector<float> ends, bool may_continue) {
        if (may_continue) {
            std::vector<float> both(totals_);
            both.insert(both.end(), ends.begin(), ends.end());
            std::nth_element(both.begin(), both.begin() + beams_ - 1, both.end(), std::greater<float>());
            for (float& end : ends)
                if (end < both[beams_ - 1]) end = -INFINITY;
        }
        record_step(std::move(ends), totals_[0], beams_, may_continue);
    }

    // Record finished hypotheses, and decide whether a live beam can still become one of the n best hypotheses
    // (mt/decoding/beam.py explains the bound).
    void record_step(std::vector<float> ends, float leading, int needed, bool may_continue) {
        const float divisor = penalty(steps_);
        for (const float end : ends) pool_.push_back(end / divisor);
        std::sort(pool_.begin(), pool_.end(), std::greater<float>());
        pool_.resize(beams_);
        const float worst = pool_[params_.n_best - 1];
        const bool hopeful = leading / penalty(params_.longest - 1) > worst;
        const bool unfilled = pool_[needed - 1] == -INFINITY;
        finished_ = !may_continue || !hopeful || !(unfilled || leading / divisor > worst);
        trail_.push_back({parents_, tokens_, totals_, std::move(ends)});
    }

    Hypothesis follow(const End& end) const {
        Hypothesis hypothesis;
        int beam = end.beam;
        float total = trail_[end.step].ends[beam];
        hypothesis.score = end.score, hypothesis.log_probability = total;
        hypothesis.beams.push_back(beam);
        for (int step = end.step; step-- > 0;) {
            hypothesis.tokens.push_back(trail_[step].tokens[beam]);
            hypothesis.token_log_probabilities.push_back(total - trail_[step].totals[beam]);
            total = trail_[step].totals[beam];
            hypothesis.beams.push_back(beam = trail_[step].parents[beam]);
        }
        hypothesis.token_log_probabilities.push_back(total);
        std::reverse(hypothesis.tokens.begin(), hypothesis.tokens.end());
        std::reverse(hypothesis.token_log_probabilities.begin(), hypothesis.token_log_probabilities.end());
        std::reverse(hypothesis.beams.begin(), hypothesis.beams.end());
        return hypothesis;
    }

    int beams_, steps_ = 0;
    SearchParams params_;
    std::vector<int32_t> prefix_;
    bool finished_ = false, failed_ = false;
    std::vector<float> pool_;  // scores of finished hypotheses, best first
    std::vector<int> tokens_, parents_;
    std::vector<float> totals_;  // log-probabilities
    std::vector<Step> trail_;
};

}  // namespace mt
