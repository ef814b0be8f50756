"""Realistic files of each document format, and their round trips through the parsers and a model."""
