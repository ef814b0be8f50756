"""Parsing of untrusted documents and markup in processes with limits, which can be killed."""
