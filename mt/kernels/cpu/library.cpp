// C interface for mt/kernels/library.py, which uses ctypes: handles and plain arrays.
#include <cstdio>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include "batch.hpp"
#include "forced.hpp"

using namespace mt;

namespace {

thread_local char problem[256];  // error message of this thread's last failed call

// C callers cannot catch exceptions. A call that fails returns -1 or null, and stores the reason in `problem`.
template <typename Result, typename Work>
Result guarded(Result failed, Work&& work) {
    try {
        return work();
    } catch (const std::exception& error) {
        std::snprintf(problem, sizeof problem, "%s", error.what());
        return failed;
    }
}

template <typename Work>
int done(Work&& work) {
    return guarded(-1, [&] { return work(), 0; });
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

// Increase this number with every change of this interface.
int mt_interface() { return 16; }

const char* mt_problem() { return problem; }

// Let the allocator of the whole process keep freed memory. The system would have to clear it again.
void mt_keep_memory() {
#if defined(__GLIBC__)
    if (!mallopt(M_MMAP_THRESHOLD, 1 << 30)) mallopt(M_MMAP_THRESHOLD, 1 << 25);  // limit of older glibc
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
#endif
}

Tensors* mt_tensors_new() {
    return guarded<Tensors*>(nullptr, [] { return new Tensors; });
}
void mt_tensors_free(Tensors* tensors) { delete tensors; }
// If the tensor has bytes and scales of its rows, `data` is null.
int mt_tensors_add(Tensors* tensors, const char* name, const float* data, const int8_t* bytes, const float* scales,
                   int64_t rows, int64_t columns) {
    return done([&] { tensors->add(name, {data, bytes, scales, rows, columns}); });
}

// Returns the number of bytes of memory that a model needs. Fails if a tensor is missing or has a wrong size.
int64_t mt_model_size(const Config* config, const Tensors* tensors) {
    return guarded<int64_t>(
        -1, [&] { return int64_t(Model(*config, *tensors, Memory(nullptr, false)).memory_size()); });
}

// Builds a model in the memory at `begin`: memory of zeros is filled; memory that is ready has the arrays already.
Model* mt_model_new(const Config* config, const Tensors* tensors, uint8_t* begin, int ready) {
    return guarded<Model*>(nullptr, [&] { return new Model(*config, *tensors, Memory(begin, ready)); });
}
void mt_model_free(Model* model) { delete model; }

// Let threads help the thread that decodes the only batch of a model. The model must have no batch.
int mt_model_help(Model* model, int helpers) {
    return done([&] { model->set_helpers(helpers); });
}

// Write the cross-attention weights of a teacher-forced pass: [layers, heads, target, source] for each of `count`
// pairs.
int mt_cross_attention(const Model* model, int count, const int32_t* sources, const int32_t* source_lengths,
                       const int32_t* targets, const int32_t* target_lengths, float* out) {
    return done([&] { CrossAttention(*model).write({count, sources, source_lengths, targets, target_lengths}, out); });
}

// Fails if an id is not in the vocabulary, or `always`, which must ascend, lacks EOS.
Shortlist* mt_shortlist_new(const Model* model, int count, const int32_t* always, const int64_t* offsets,
                            const int32_t* allowed, int rare_count, const int32_t* rare) {
    return guarded<Shortlist*>(
        nullptr, [&] { return new Shortlist(*model, count, always, offsets, allowed, rare_count, rare); });
}
void mt_shortlist_free(Shortlist* shortlist) { delete shortlist; }

// After a failed call, a batch may only be freed. The shortlist may be null.
Batch* mt_batch_new(const Model* model, const Shortlist* shortlist) {
    return guarded<Batch*>(nullptr, [&] { return new Batch(*model, shortlist); });
}
void mt_batch_free(Batch* batch) { delete batch; }
int mt_batch_join(Batch* batch, int count, const int32_t* ids, const int32_t* lengths, const SearchParams* params,
                  const int32_t* prefixes) {
    return done([&] { batch->join(count, ids, lengths, params, prefixes); });
}
int mt_batch_require(Batch* batch, int place, const TermTables* tables) {
    return done([&] { batch->require(place, *tables); });
}
int mt_batch_extend(Batch* batch, Batch* other) {
    return done([&] { batch->extend(*other); });
}
int mt_batch_select(Batch* batch, int count, const int32_t* places) {
    return done([&] { batch->select(count, places); });
}
int mt_batch_logits(Batch* batch, const int32_t* tokens, float* out) {
    return done([&] { batch->logits(tokens, out); });
}
int mt_batch_reorder(Batch* batch, const int64_t* rows) {
    return done([&] { batch->reorder(rows); });
}

// Take at most `steps` steps; stop after a step that finishes a sentence. Returns the number of steps; sets finished
// [sentences].
int mt_batch_advance(Batch* batch, int steps, uint8_t* finished) {
    return guarded(-1, [&] {
        int before = 0, now = 0, taken = 0;
        for (int i = 0; i < batch->size(); i++) before += batch->sentence(i).search.finished();
        do {
            batch->advance();
            now = 0;
            for (int i = 0; i < batch->size(); i++) now += finished[i] = batch->sentence(i).search.finished();
        } while (++taken < steps && now == before);
        return taken;
    });
}

// Write the hypotheses of a finished sentence, best first, and return their number. Hypothesis i has lengths[i] tokens
// and one more log-probability, in a row with space for `room` tokens, and a row of attention to the source for each.
int mt_batch_results(Batch* batch, int place, int room, int32_t* lengths, int32_t* tokens,
                     float* token_log_probabilities, float* scores, float* log_probabilities, float* attention) {
    return guarded(-1, [&] {
        const std::vector<Hypothesis> hypotheses = batch->results(place);
        for (size_t i = 0; i < hypotheses.size(); i++) {
            const auto& [ids, log_probs, beams, score, log_probability] = hypotheses[i];
            lengths[i] = int32_t(ids.size());
            std::copy(ids.begin(), ids.end(), tokens + i * room);
            std::copy(log_probs.begin(), log_probs.end(), token_log_probabilities + i * room);
            scores[i] = score;
            log_probabilities[i] = log_probability;
            batch->write_attention(place, hypotheses[i], attention + i * room * batch->sentence(place).length);
        }
        return int(hypotheses.size());
    });
}
}
