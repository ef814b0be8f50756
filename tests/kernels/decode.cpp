// Decodes the sentences of a file, for processors that only an emulator runs. test_arm.py writes the file.
#include <deque>

#include "library.cpp"

int main(int, char** arguments) {
    std::FILE* file = std::fopen(arguments[1], "rb");
    const auto read = [&](auto* to, size_t count) {
        if (!file || std::fread(to, sizeof *to, count, file) != count) std::abort();
        return to;
    };
    const auto number = [&] {
        int32_t value;
        return *read(&value, 1);
    };
    Config config;
    read(&config, 1);
    std::deque<std::vector<char>> kept;
    const auto array = [&](size_t size) { return read(kept.emplace_back(size).data(), size); };
    Tensors tensors;
    for (int left = number(); left; left--) {
        const int name = number(), bytes = number(), rows = number(), columns = number();
        const char* text = array(name);
        const void* data = array(size_t(rows) * columns * (bytes ? 1 : sizeof(float)));
        const void* scales = bytes ? array(rows * sizeof(float)) : nullptr;
        tensors.add(text, {bytes ? nullptr : static_cast<const float*>(data),
                           bytes ? static_cast<const int8_t*>(data) : nullptr, static_cast<const float*>(scales), rows,
                           columns});
    }
    Buffer<uint8_t> memory;
    const size_t size = Model(config, tensors, Memory(nullptr, false)).memory_size();
    const Model model(config, tensors, Memory(memory.reserve(size), false));
    const int count = number(), ids = number();
    std::vector<int32_t> lengths(count), sources(ids);
    std::vector<SearchParams> params(count);
    read(lengths.data(), count), read(sources.data(), ids), read(params.data(), count);
    Batch batch(model, nullptr);
    batch.join(count, sources.data(), lengths.data(), params.data(), nullptr);
    std::vector<uint8_t> finished(count);
    while (std::count(finished.begin(), finished.end(), 1) < count) mt_batch_advance(&batch, 1, finished.data());
    for (int s = 0; s < count; s++) {
        const auto [tokens, log_probabilities, score, log_probability] = batch.results(s).at(0);
        std::printf("%.6f", score);
        for (const int32_t token : tokens) std::printf(" %d", token);
        std::printf("\n");
    }
}
