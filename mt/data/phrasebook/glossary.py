"""Glossary: each noun of the phrasebook with its articles, which show the gender. It is training data only."""

from mt.data.phrasebook.grammar import Case, NounPhrase
from mt.data.phrasebook.lexicon import lexicon


def glossary() -> list[tuple[str, str]]:
    """Return pairs such as ("the exhibition", "die Ausstellung") and ("an exhibition", "eine Ausstellung")."""
    phrases = [
        NounPhrase(determiner, noun, plural)
        for table in lexicon().nouns.values()
        for noun in table
        for determiner, plural in (("the", False), ("a", False), ("the", True))
        if noun.german_plural or not plural
    ]
    return [(phrase.english(), phrase.german(Case.NOMINATIVE)) for phrase in phrases]
