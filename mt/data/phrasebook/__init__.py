"""The embedded corpus: a grammar, written by us, of what a traveller would say, in English and German.

nouns, vocabulary: the words as tables; lexicon: the words as records; grammar: agreement and word order; slots: the
possible parts of sentences; clauses, scenes: the constructions; everyday: fixed phrases; glossary: nouns and their
articles; split: held-out combinations, and sampling.
"""

from mt.data.phrasebook.split import CONSTRUCTIONS, PhrasePair, generate, held_out_pairs, number_of_pairs, write

__all__ = ["CONSTRUCTIONS", "PhrasePair", "generate", "held_out_pairs", "number_of_pairs", "write"]
