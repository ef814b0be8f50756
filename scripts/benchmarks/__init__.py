"""What scripts/benchmark.py runs: a module a verb, and what the verbs share."""
