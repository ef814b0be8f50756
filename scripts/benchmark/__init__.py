"""Benchmarks of a checkout. They are not part of the installed package.

    python -m scripts.benchmark.decode MODEL --source-file test.en --reference-file test.de --output benchmarks/decode
    python -m scripts.benchmark.decode MODEL --source-file test.en --against ../earlier --output benchmarks/decode
    python -m scripts.benchmark.train RECIPE --output benchmarks/train
    python -m scripts.benchmark.layers --output benchmarks/layers
    python -m scripts.benchmark.gpu --part decoding --output benchmarks/gpu

The results are a table and a JSON file. A toolkit that is not installed has a row with a message instead of results.
Use a machine without other work; the results contain a warning if other programs used it.
"""
