"""Benchmarks of `mt-service benchmark`: one module for each benchmark, and modules that several benchmarks use."""
