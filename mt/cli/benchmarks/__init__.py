"""Benchmarks of `mt-service benchmark`: one module for each verb, and their shared parts."""
