"""Clauses of a sentence: the places at which a long sentence may be divided, and the words that begin a clause."""

import re
from functools import cache
from itertools import pairwise

from mt.languages import primary_language
from mt.text.alignment import Range

AFTER_CLAUSE = re.compile(  # no full stop after a short word, which may be an abbreviation or an ordinal number
    r"""(?:(?<=[,;:!?…،؛؟।–—])|(?<=\w{4}\.)|(?<=\.{3}))["'”’»)\]]*\s+|(?<=[，、；：。！？])["'”’」』）]*(?=\S)"""
)
_CONJUNCTIONS = {  # coordinating ones and those that no other word class shares, before which a sentence is divided
    "cs": "a ale anebo nebo protože takže zatímco přestože ačkoli",
    "da": "og men eller fordi mens selvom",
    "de": "und aber oder denn sondern weil obwohl sodass nachdem",
    "en": "and but or because although though while whereas",
    "es": "y e pero o porque sino aunque mientras",
    "fr": "et mais ou car parce puis tandis puisque",
    "it": "e ed ma o perché però mentre sebbene",
    "nb": "og men eller fordi mens selvom",
    "nl": "en maar of omdat hoewel terwijl want",
    "pl": "i a ale lub albo oraz ponieważ bo chociaż więc",
    "pt": "e mas ou porque embora enquanto porém",
    "ru": "и а но или потому поэтому хотя однако",
    "sv": "och men eller eftersom medan fastän",
    "uk": "і й та але або тому хоча однак",
}
_SUBORDINATORS = {  # words that also have other uses
    "cs": "když kde kdy který která které kteří jestli",
    "da": "når hvor hvis da",
    "de": "wenn als dass wo während bevor damit",
    "en": "when where which who whose if unless until",
    "es": "cuando donde quien quienes",
    "fr": "quand lorsque où dont qui si",
    "it": "quando dove mentre se",
    "nb": "når hvor hvis da",
    "nl": "toen wanneer waar als dat",
    "pl": "gdy kiedy gdzie który która które którzy jeśli",
    "pt": "quando onde quem se",
    "ru": "когда где который которая которое которые если",
    "sv": "när där om",
    "uk": "коли де який яка яке які якщо",
}
_OTHER_WORDS = {  # words that often begin a sentence and are no names; not the German "Sie", which may be formal
    "de": (
        "alle am an auch auf aus bei bis da das dem den der die dies diese dieser du durch ein eine einem einen einer "
        "er es für ich im in ist kein keine mein meine mit nach nicht ob ohne sein seine seit so um uns unser unsere "
        "vom von vor wann was wer wie wir zu zum zur"
    ),
    "en": (
        "a after all an as at before by for from he her his how in it its my no not of on one our she so some that the "
        "their then there these they this those to two we what why with you your"
    ),
    "fr": (
        "à afin alors après au aussi aux avant avec ce ces cet cette chaque comme dans de des deux donc du elle elles "
        "en il ils je la le les leur leurs ma mes mon ne nos notre nous on par pendant pour que sa sans ses son sous "
        "sur tous tout tu un une vos votre vous y"
    ),
}


def clause_ranges(sentence: str, language: str) -> list[Range]:
    """Return the ranges of the clauses of a sentence; there is at least one.

    A clause ends at punctuation, or begins with a conjunction.
    """
    places = {match.end() for match in AFTER_CLAUSE.finditer(sentence)}
    for pattern in conjunctions(language)[:1]:
        places |= {match.end() for match in pattern.finditer(sentence)}
    return [(begin, end) for begin, end in pairwise(sorted({0, *places, len(sentence)}))] or [(0, 0)]


@cache
def conjunctions(language: str) -> tuple[re.Pattern[str], ...]:
    """Return the patterns of the white space before a word that may begin a clause, the better places first."""
    words = (table.get(primary_language(language)) for table in (_CONJUNCTIONS, _SUBORDINATORS))
    return tuple(re.compile(rf"\s+(?=(?:{one.replace(' ', '|')})\s)") for one in words if one)


def may_lower(word: str, language: str) -> bool:
    """Return whether the first word of a translation is capitalised only because it begins a sentence.

    Other words than these may be names. In a language without a table, every word keeps its capital.
    """
    tables = (_CONJUNCTIONS, _SUBORDINATORS, _OTHER_WORDS)
    return word.lower() in " ".join(table.get(primary_language(language), "") for table in tables).split()
