// Beam search for one sentence whose translation must contain some words and must not contain others. It equals
// mt/decoding/constrained_beam.py, which explains the method and its formulas.
#pragma once

#include <limits>

#include "search.hpp"

namespace mt {

// The tables of TermConstraints (mt/decoding/term_constraints.py), equal to `TermTables` of mt/kernels/structs.py.
struct TermTables {
    int32_t automata, nodes, columns, proposals, completions, begins, cues, patience;
    const int16_t* column;        // [vocabulary]
    const int32_t* following;     // [nodes, columns]
    const uint8_t* counts;        // [nodes, columns]
    const int32_t* proposed;      // [nodes, proposals]
    const int32_t* completing;    // [nodes, completions]
    const uint8_t* full;          // [nodes]
    const int32_t* begin;         // [automata, begins]
    const float* cost;            // [automata, begins]
    const int32_t* cue;           // [automata, cues]
    const int32_t *start, *needed, *allowed;  // [automata]
    const float* ending;          // [automata]
    float threshold;
};

class TermSearch {
  public:
    static constexpr float MIN_CUE = -12.0f, BORROWED_CUE = -2.0f;
    static constexpr int MIN_FINISHED = 5;

    // Copies the tables. Throws std::out_of_range if an entry is not an id or not a node.
    TermSearch(const TermTables& t, int beams, const Config& config)
        : automata_(t.automata), columns_(t.columns), proposals_(t.proposals), completions_(t.completions),
          begins_(t.begins), cues_(t.cues), patience_(t.patience), beams_(beams), vocabulary_(config.vocabulary),
          threshold_(t.threshold), config_(config), never_{config.pad, config.unk, config.bos, config.eos},
          column_(t.column, t.column + config.vocabulary),
          following_(t.following, t.following + size_t(t.nodes) * t.columns),
          proposed_(t.proposed, t.proposed + size_t(t.nodes) * t.proposals),
          completing_(t.completing, t.completing + size_t(t.nodes) * t.completions),
          begin_(t.begin, t.begin + size_t(t.automata) * t.begins), cue_(t.cue, t.cue + size_t(t.automata) * t.cues),
          start_(t.start, t.start + t.automata), needed_(t.needed, t.needed + t.automata),
          allowed_(t.allowed, t.allowed + t.automata), counts_(t.counts, t.counts + size_t(t.nodes) * t.columns),
          full_(t.full, t.full + t.nodes), cost_(t.cost, t.cost + size_t(t.automata) * t.begins),
          ending_(t.ending, t.ending + t.automata), met_(size_t(beams) * t.automata, 0), word_(beams, -1),
          parents_(beams, 0), grandparents_(beams, 0) {
        for (const auto* ids : {&proposed_, &completing_, &begin_, &cue_}) check(*ids, vocabulary_);
        for (const auto* nodes : {&following_, &start_}) check(*nodes, t.nodes);
        check(column_, t.columns);
        for (int b = 0; b < beams; b++) nodes_.insert(nodes_.end(), start_.begin(), start_.end());
        whole_ = 2 * std::accumulate(needed_.begin(), needed_.end(), 0);
    }

    // Take a step, given the logits of each beam, or null for a beam that is not alive. The logits are overwritten.
    void advance(BeamSearch& search, const std::vector<float*>& rows) {
        const int last = search.params().longest - 1, step = search.steps();
        std::vector<float> ends(beams_, -INFINITY);
        for (int k = 0; k < beams_; k++) {
            if (!rows[k]) continue;
            if (!normalise(rows[k], config_)) return search.fail();
            if (search.may_end() && complete(k)) ends[k] = rows[k][config_.eos] + search.total(k);
            for (const int id : never_) rows[k][id] = -INFINITY;
            search.constrain(k, rows[k], vocabulary_);
        }
        find_candidates(search, rows);
        const std::vector<int> kept = allocate();

        // Hypotheses with all words compete with hypotheses that end.
        std::vector<float> rivals(ends);
        for (const Candidate& c : candidates_)
            if (c.group >= last_group()) rivals.push_back(c.total);
        const int needed = std::max(search.params().n_best, std::min(beams_, MIN_FINISHED));
        if (step < last && int(rivals.size()) >= needed) {
            std::nth_element(rivals.begin(), rivals.begin() + needed - 1, rivals.end(), std::greater<float>());
            for (float& end : ends)
                if (end < rivals[needed - 1]) end = -INFINITY;
        }

        prune(kept, search.params().n_best);
        const bool late = step >= patience_ && search.best_finished() > -INFINITY;
        std::vector<float> totals(beams_, -INFINITY);
        std::vector<int> tokens(beams_, 0), parents(beams_, 0), nodes(nodes_.size()), counts(met_.size());
        float leading = -INFINITY;
        for (int k = 0; k < beams_; k++) {
            word_[k] = -1;
            if (k >= int(kept.size())) continue;
            const Candidate& c = candidates_[kept[k]];
            totals[k] = c.total, tokens[k] = c.token, parents[k] = c.beam, word_[k] = c.word;
            if (c.total > -INFINITY && !(late && c.group < last_group())) leading = std::max(leading, c.total);
            follow(node(c.beam), met(c.beam), c.token, &nodes[size_t(k) * automata_], &counts[size_t(k) * automata_]);
        }
        nodes_ = std::move(nodes), met_ = std::move(counts);
        std::vector<int> grandparents(beams_);
        for (int k = 0; k < beams_; k++) grandparents[k] = parents_[parents[k]];
        grandparents_ = std::move(grandparents), parents_ = parents;
        search.continue_with(std::move(totals), std::move(tokens), std::move(parents), std::move(ends), leading, needed);
    }

  private:
    struct Candidate {
        float value, total;
        int token, beam, word, group;
        bool complete;  // whether the token completes `word`
    };

    template <typename Number>
    static void check(const std::vector<Number>& entries, int size) {
        for (const Number entry : entries)
            if (entry < 0 || entry >= size) throw std::out_of_range("a table of terms has an invalid entry");
    }

    int32_t* node(int beam) { return &nodes_[size_t(beam) * automata_]; }
    int last_group() const { return beams_ / 2; }
    int32_t* met(int beam) { return &met_[size_t(beam) * automata_]; }
    // Number of occurrences of a word in the tokens of a beam.
    int written(int beam, int a) { return met(beam)[a] + full_[node(beam)[a]]; }
    bool complete(int beam) {
        for (int a = 0; a < automata_; a++)
            if (written(beam, a) < needed_[a]) return false;
        return true;
    }

    // The automata after a token. The results may replace the arguments.
    void follow(const int32_t* nodes, const int32_t* met, int token, int32_t* nodes_after, int32_t* met_after) const {
        for (int a = 0; a < automata_; a++) {
            const size_t place = size_t(nodes[a]) * columns_ + column_[token];
            met_after[a] = met[a] + counts_[place];
            nodes_after[a] = following_[place];
        }
    }

    // The logarithm of the sum of the probabilities of `count` ids; -inf if there are none. Id 0 is padding.
    static float log_sum(const float* row, const int32_t* ids, int count) {
        float most = -INFINITY, total = 0;
        for (int i = 0; i < count; i++) most = std::max(most, row[ids[i]]);
        if (most == -INFINITY) return most;
        for (int i = 0; i < count; i++) total += std::exp(row[ids[i]] - most);
        return most + std::log(total);
    }

    // Place + agreement of each beam and word, [beams, automata].
    std::vector<float> places(const BeamSearch& search, const std::vector<float*>& rows) const {
        const int A = automata_;
        std::vector<float> cues(size_t(beams_) * A), firsts(cues), place(cues), sums(cues);
        for (int k = 0; k < beams_; k++)
            for (int a = 0; a < A && rows[k]; a++) {
                cues[k * A + a] = log_sum(rows[k], &cue_[size_t(a) * cues_], cues_);
                firsts[k * A + a] = log_sum(rows[k], &begin_[size_t(a) * begins_], begins_);
            }
        const auto kin = [&](int k, int j) { return rows[j] && word_[j] < 0 && grandparents_[k] == grandparents_[j]; };
        for (int a = 0; a < A; a++) {
            for (int k = 0; k < beams_; k++) {
                float most = cues[k * A + a];
                for (int j = 0; j < beams_; j++)
                    if (kin(k, j)) most = std::max(most, cues[j * A + a] + BORROWED_CUE);
                place[k * A + a] = std::max(most, MIN_CUE);
            }
            const auto cue = cue_.begin() + size_t(a) * cues_;
            const bool cued = std::any_of(cue, cue + cues_, [](int id) { return id > 0; });
            for (int k = 0; k < beams_; k++) {
                const float first = firsts[k * A + a];
                if (!cued || !rows[k]) {
                    sums[k * A + a] = std::max(first, MIN_CUE);
                    continue;
                }
                int best = -1;
                float most = -INFINITY;
                for (int j = 0; j < beams_; j++) {
                    const float joint = kin(k, j) ? search.total(j) + place[j * A + a] + firsts[j * A + a] : -INFINITY;
                    if (best < 0 || joint > most) best = j, most = joint;
                }
                const float highest = rows[best] ? firsts[best * A + a] : -INFINITY;
                float agreement = first == highest ? 0 : first - highest;
                agreement = std::min(std::max(agreement, MIN_CUE), 0.0f);
                sums[k * A + a] = place[k * A + a] + agreement;
            }
        }
        return sums;
    }

    void find_candidates(const BeamSearch& search, const std::vector<float*>& rows) {
        const std::vector<float> place = places(search, rows);
        candidates_.clear();
        for (int k = 0; k < beams_; k++)
            for (int a = 0; a < automata_ && rows[k]; a++)
                if (written(k, a) >= allowed_[a])
                    for (int c = 0; c < completions_; c++)
                        rows[k][completing_[size_t(node(k)[a]) * completions_ + c]] = -INFINITY;
        std::vector<float> onward(beams_, -INFINITY);
        for (int k = 0; k < beams_; k++)
            if (rows[k] && word_[k] >= 0) onward[k] = log_sum(rows[k], proposals_of(k), proposals_);
        for (int k = 0; k < beams_; k++) {
            if (!rows[k]) continue;
            const size_t begin = candidates_.size();
            if (word_[k] < 0) {
                add_best(k, rows[k]);
                for (int a = 0; a < automata_; a++)
                    if (written(k, a) < needed_[a]) open_word(k, a, rows[k], place[size_t(k) * automata_ + a]);
            } else {
                float most = -INFINITY;
                for (int j = 0; j < beams_; j++)
                    if (rows[j] && word_[j] >= 0 && node(j)[word_[j]] == node(k)[word_[k]])
                        most = std::max(most, onward[j]);
                for (int p = 0; p < proposals_; p++) add(k, proposals_of(k)[p], rows[k], -most, word_[k]);
            }
            drop_duplicates(begin);
            for (size_t c = begin; c < candidates_.size(); c++) weigh(candidates_[c], search.total(k));
        }
    }

    const int32_t* proposals_of(int beam) { return &proposed_[size_t(node(beam)[word_[beam]]) * proposals_]; }

    void add(int beam, int token, const float* row, float more, int word) {
        if (row[token] > -INFINITY) candidates_.push_back({row[token] + more, 0, token, beam, word, 0, false});
    }

    // The best continuations of a beam. Of equals, the lowest id comes first.
    void add_best(int beam, const float* row) {
        const int wanted = std::min(beams_, vocabulary_);
        std::vector<std::pair<float, int>> best(wanted, {-INFINITY, 0});
        for (int i = 0; i < vocabulary_; i += W)
            for (unsigned above = simd::above(simd::load(row + i), simd::all(best.back().first)); above;
                 above &= above - 1) {
                const int id = i + __builtin_ctz(above);
                if (!(row[id] > best.back().first)) continue;
                int at = wanted - 1;
                for (; at > 0 && row[id] > best[at - 1].first; at--) best[at] = best[at - 1];
                best[at] = {row[id], id};
            }
        for (const auto& [value, id] : best)
            if (value > -INFINITY) candidates_.push_back({value, 0, id, beam, -1, 0, false});
    }

    void open_word(int beam, int a, const float* row, float place) {
        const int32_t* ids = &begin_[size_t(a) * begins_];
        const float all = log_sum(row, ids, begins_);
        for (int i = 0; i < begins_; i++) add(beam, ids[i], row, cost_[size_t(a) * begins_ + i] - all + place, a);
    }

    // A candidate that completes a word replaces less probable candidates with the same id. It is dropped if it is not
    // more probable than one of the best continuations with this id.
    void drop_duplicates(size_t begin) {
        const size_t end = candidates_.size();
        std::vector<bool> dropped(end - begin, false);
        std::vector<int32_t> nodes(automata_), counts(automata_);
        for (size_t j = begin; j < end; j++) {
            Candidate& c = candidates_[j];
            if (c.word < 0) continue;
            follow(node(c.beam), met(c.beam), c.token, nodes.data(), counts.data());
            c.complete = full_[nodes[c.word]];
            for (size_t i = begin; i < end && c.complete; i++) {
                if (candidates_[i].word >= 0 || candidates_[i].token != c.token) continue;
                (candidates_[i].value < c.value ? dropped[i - begin] : dropped[j - begin]) = true;
            }
        }
        for (size_t c = begin; c < end; c++)
            if (dropped[c - begin]) candidates_[c].value = -INFINITY;
    }

    // The total log-probability of a candidate, and its group.
    void weigh(Candidate& c, float total) {
        std::vector<int32_t> nodes(automata_), counts(automata_);
        follow(node(c.beam), met(c.beam), c.token, nodes.data(), counts.data());
        if (c.complete) c.word = -1;
        int done = c.word >= 0;
        c.total = c.value;
        for (int a = 0; a < automata_; a++) {
            done += 2 * std::min(counts[a] + full_[nodes[a]], needed_[a]);
            const int before = met(c.beam)[a];
            const bool goes_on = full_[node(c.beam)[a]] && before < needed_[a] && counts[a] == before;
            if (goes_on) c.total += nodes[a] <= start_[a] + 1 ? -INFINITY : ending_[a];
        }
        c.total += total;
        c.group = whole_ > last_group() ? done * last_group() / std::max(whole_, 1) : done + last_group() - whole_;
    }

    // The best candidate of each group, the groups with most words first; then the second best of each group, and so
    // on.
    std::vector<int> allocate() const {
        std::vector<int> order;
        for (size_t c = 0; c < candidates_.size(); c++)
            if (candidates_[c].total > -INFINITY) order.push_back(int(c));
        std::stable_sort(order.begin(), order.end(),
                         [&](int a, int b) { return candidates_[a].total > candidates_[b].total; });
        std::vector<int> ranks(candidates_.size()), taken(last_group() + 1, 0);
        for (const int c : order) ranks[c] = taken[candidates_[c].group]++;
        std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
            return ranks[a] != ranks[b] ? ranks[a] < ranks[b] : candidates_[a].group > candidates_[b].group;
        });
        order.resize(std::min(order.size(), size_t(beams_)));
        return order;
    }

    // Drop kept candidates: a candidate is dropped if `n_best` kept candidates with as many words or more have totals
    // that are higher by more than the threshold.
    void prune(const std::vector<int>& kept, int n_best) {
        std::vector<int> dropped;
        for (const int c : kept) {
            const Candidate& own = candidates_[c];
            const auto higher = std::count_if(kept.begin(), kept.end(), [&](int other) {
                return candidates_[other].group >= own.group && candidates_[other].total > own.total + threshold_;
            });
            if (higher >= n_best) dropped.push_back(c);
        }
        for (const int c : dropped) candidates_[c].total = -INFINITY;
    }

    const int automata_, columns_, proposals_, completions_, begins_, cues_, patience_, beams_, vocabulary_;
    const float threshold_;
    const Config& config_;
    const int never_[4];
    std::vector<int16_t> column_;
    std::vector<int32_t> following_, proposed_, completing_, begin_, cue_, start_, needed_, allowed_;
    std::vector<uint8_t> counts_, full_;
    std::vector<float> cost_, ending_;
    int whole_;                        // twice the number of required words
    std::vector<int32_t> nodes_, met_;  // [beams, automata]: the node, and how often the word has occurred
    std::vector<int> word_;            // [beams]: the automaton of the word that the beam is writing, or -1
    std::vector<int> parents_, grandparents_;
    std::vector<Candidate> candidates_;
};

}  // namespace mt
