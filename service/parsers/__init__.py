"""Parsing of untrusted documents and markup in separate processes. These have limits and can be killed."""
