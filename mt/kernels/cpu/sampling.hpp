// Sampling of one sentence, equal to mt/decoding/sampling.py for a batch. That file defines the random numbers.
#pragma once

#include "search.hpp"

namespace mt {

class Sampler {
  public:
    Sampler(const SearchParams& params, const Config& config) : params_(params), config_(config) {}

    // Take a step of all samples, given the logits of each, or null for an ended sample. The logits are overwritten.
    void advance(BeamSearch& search, const std::vector<float*>& rows) {
        const int samples = int(rows.size()), step = search.steps();
        std::vector<float> totals(samples, -INFINITY), ends(samples, -INFINITY);
        std::vector<int> tokens(samples, config_.eos), parents(samples);
        std::iota(parents.begin(), parents.end(), 0);
        for (int k = 0; k < samples; k++) {
            if (!rows[k]) continue;
            if (!normalise(rows[k], config_)) return search.fail();
            if (!search.may_end()) rows[k][config_.eos] = -INFINITY;
            for (const int id : {config_.pad, config_.unk, config_.bos}) rows[k][id] = -INFINITY;
            search.constrain(k, rows[k], config_.vocabulary);
            if (step < params_.longest - 1) tokens[k] = draw(rows[k], k, step);
            (tokens[k] == config_.eos ? ends : totals)[k] = search.total(k) + rows[k][tokens[k]];
        }
        const float leading = *std::max_element(totals.begin(), totals.end());
        search.go_on(std::move(totals), std::move(tokens), std::move(parents), std::move(ends), leading, samples - 1);
    }

  private:
    static uint32_t mixed(uint32_t x) {  // lowbias32
        x ^= 0x9e3779b9u;
        x = (x ^ x >> 16) * 0x7feb352du;
        x = (x ^ x >> 15) * 0x846ca68bu;
        return x ^ x >> 16;
    }

    // The random number of a sample at a step, in (0, 1).
    double uniform(int sample, int step) const {
        const uint32_t seed = mixed(mixed(uint32_t(params_.seed)) ^ uint32_t(params_.seed >> 32));
        return (mixed(mixed(mixed(seed ^ uint32_t(sample)) ^ uint32_t(step))) + 0.5) / 4294967296.0;
    }

    // The first token whose cumulative probability exceeds the random number, from log-probabilities. EOS if no token is
    // allowed.
    int draw(const float* row, int sample, int step) {
        const int room = whole_vectors(config_.vocabulary);
        float* weights = weights_.reserve(room);
        Floats most = simd::all(-INFINITY);
        for (int i = 0; i < room; i += W) {
            const Floats scores = simd::load(row + i) / params_.temperature;
            simd::store(weights + i, scores);
            most = simd::maximum(most, scores);
        }
        const float peak = simd::largest(most);
        if (peak == -INFINITY) return config_.eos;
        for (int i = 0; i < room; i += W) simd::store(weights + i, simd::exponential(simd::load(weights + i) - peak));
        if (params_.top_k > 0 && params_.top_k < config_.vocabulary) keep_top_k(weights);
        if (params_.top_p < 1) keep_top_p(weights);
        const double bound = uniform(sample, step) * std::accumulate(weights, weights + config_.vocabulary, 0.0);
        double sum = 0;
        int token = 0;
        while (token < config_.vocabulary - 1 && (sum += weights[token]) <= bound) token++;
        return token;
    }

    // Fan et al. 2018, section 5.4.
    void keep_top_k(float* weights) {
        std::vector<float> sorted(weights, weights + config_.vocabulary);
        const auto worst = sorted.begin() + params_.top_k - 1;
        std::nth_element(sorted.begin(), worst, sorted.end(), std::greater<float>());
        drop_below(weights, *worst);
    }

    // Holtzman et al. 2020, section 3.1: the most probable tokens are taken from a heap.
    void keep_top_p(float* weights) {
        std::vector<float> heap(weights, weights + config_.vocabulary);
        std::make_heap(heap.begin(), heap.end());
        const double enough = params_.top_p * std::accumulate(heap.begin(), heap.end(), 0.0);
        auto end = heap.end();
        double sum = 0;
        do std::pop_heap(heap.begin(), end), sum += *--end;
        while (sum < enough && end != heap.begin());
        drop_below(weights, *end);
    }

    void drop_below(float* weights, float least) const {
        for (int i = 0; i < config_.vocabulary; i++)
            if (weights[i] < least) weights[i] = 0;
    }

    const SearchParams params_;
    const Config& config_;
    Buffer<float> weights_;
};

}  // namespace mt
