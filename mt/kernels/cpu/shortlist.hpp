// The tokens that the translation of a sentence may contain (mt/kernels/shortlist.py), and the output layer over them.
#pragma once

#include "model.hpp"

namespace mt {

class Shortlist {
  public:
    // Ids [count] that are always allowed. Source token t also allows allowed[offsets[t] : offsets[t + 1]]. A source
    // with one of the ids rare [rare_count] allows the whole vocabulary.
    Shortlist(const Model& model, int count, const int32_t* always, const int64_t* offsets, const int32_t* allowed,
              int rare_count, const int32_t* rare)
        : model_(model), words_(model.output.linear.words()), rare_(model.config.vocabulary) {
        const int vocabulary = model.config.vocabulary;
        const auto check = [&](int id) {
            if (id < 0 || id >= vocabulary) throw std::out_of_range("an id is outside of the vocabulary");
        };
        std::for_each(always, always + count, check);
        if (!std::is_sorted(always, always + count)) throw std::invalid_argument("the ids must ascend");
        this->always = layer({always, always + count});
        if (this->always.eos < 0) throw std::invalid_argument("the end of the sentence must be allowed always");
        for (int i = 0; i < rare_count; i++) check(rare[i]), rare_[rare[i]] = true;
        begins_.push_back(0);
        for (int token = 0; token < vocabulary; token++) {
            for (int64_t i = offsets[token]; i < offsets[token + 1]; i++) {
                check(allowed[i]);
                if (!std::binary_search(always, always + count, allowed[i])) own_.push_back(allowed[i]);
            }
            begins_.push_back(own_.size());
        }
    }

    // Whether a source allows the whole vocabulary.
    bool allows_all(const int32_t* source, int length) const {
        return std::any_of(source, source + length, [&](int token) { return rare_[token]; });
    }

    // The output layer over the tokens that a source allows and `always` lacks. The weights are copied, so that each
    // step reads them sequentially.
    Outputs of(const int32_t* source, int length) const {
        std::vector<int32_t> ids;
        for (int i = 0; i < length; i++)
            ids.insert(ids.end(), own_.begin() + begins_[source[i]], own_.begin() + begins_[source[i] + 1]);
        std::sort(ids.begin(), ids.end());
        ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
        return layer(std::move(ids));
    }

    Outputs always;  // one layer for all sentences of a batch at once

  private:
    Outputs layer(std::vector<int32_t> ids) const {
        Linear linear(model_.output.linear, words_, ids);
        return Outputs(std::move(linear), std::move(ids), model_.config);
    }

    const Model& model_;
    const std::vector<uint32_t> words_;  // the output layer, row by row
    std::vector<bool> rare_;             // [V]
    std::vector<int32_t> own_;           // the ids that each token allows and `always` lacks, concatenated
    std::vector<size_t> begins_;
};

}  // namespace mt
