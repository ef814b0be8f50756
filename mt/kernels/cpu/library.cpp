// What mt/kernels/library.py calls, by ctypes: handles, plain arrays, and a text where something was wrong.
#include <cstdio>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include "batch.hpp"

using namespace mt;

#pragma GCC visibility push(default)
extern "C" {

// Changes with every change of this interface.
int mt_interface() { return 1; }

// For the whole process: memory that is freed stays at hand, rather than being given back and cleared again.
void mt_keep_memory() {
#if defined(__GLIBC__)
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
#endif
}

Tensors* mt_tensors_new() { return new Tensors; }
void mt_tensors_free(Tensors* tensors) { delete tensors; }
void mt_tensors_add(Tensors* tensors, const char* name, const float* data, int64_t rows, int64_t columns) {
    tensors->add(name, {data, rows, columns});
}

// Null, and why in `problem`, where a tensor is missing or does not fit.
Model* mt_model_new(const Config* config, const Tensors* tensors, char* problem, int size) {
    try {
        return new Model(*config, *tensors);
    } catch (const std::exception& error) {
        std::snprintf(problem, size, "%s", error.what());
        return nullptr;
    }
}
void mt_model_free(Model* model) { delete model; }

Batch* mt_batch_new(const Model* model, int beams) { return new Batch(*model, beams); }
void mt_batch_free(Batch* batch) { delete batch; }
void mt_batch_join(Batch* batch, int count, const int32_t* ids, const int32_t* lengths, const Wish* wishes) {
    batch->join(count, ids, lengths, wishes);
}
void mt_batch_extend(Batch* batch, Batch* other) { batch->extend(*other); }
void mt_batch_select(Batch* batch, int count, const int32_t* places) { batch->select(count, places); }
void mt_batch_logits(Batch* batch, const int32_t* tokens, float* out) { batch->logits(tokens, out); }
void mt_batch_reorder(Batch* batch, const int64_t* rows) { batch->reorder(rows); }

// At most so many steps, fewer if one of them finishes a sentence; how many were taken. finished [sentences] says who.
int mt_batch_advance(Batch* batch, int steps, uint8_t* finished) {
    int before = 0, now = 0, taken = 0;
    for (int i = 0; i < batch->size(); i++) before += batch->sentence(i).search.finished();
    do {
        batch->advance();
        now = 0;
        for (int i = 0; i < batch->size(); i++) now += finished[i] = batch->sentence(i).search.finished();
    } while (++taken < steps && now == before);
    return taken;
}

// The hypotheses of a finished sentence, best first: how many. Each has lengths[i] tokens, in a line of `room` of them,
// and one log-probability more.
int mt_batch_results(Batch* batch, int place, int room, int32_t* lengths, int32_t* tokens, float* each, float* scores,
                     float* log_probabilities) {
    const std::vector<Hypothesis> found = batch->sentence(place).search.results();
    for (size_t i = 0; i < found.size(); i++) {
        lengths[i] = int32_t(found[i].tokens.size());
        std::copy(found[i].tokens.begin(), found[i].tokens.end(), tokens + i * room);
        std::copy(found[i].each.begin(), found[i].each.end(), each + i * room);
        scores[i] = found[i].score;
        log_probabilities[i] = found[i].log_probability;
    }
    return int(found.size());
}
}
