"""Patterns of the spans that a translation must preserve.

A search takes linear time: every quantifier is bounded or possessive, or matches text that is read only once. Before
Python 3.11.5, a possessive group ends in the wrong place if its last repetition fails after a quantifier or lookahead.
"""

import re

from mt.text.alignment import OBJECTS, WIDE
from mt.text.normalise import GROUP_SPACES, LETTER_SYMBOL
from mt.text.word_tables import filled, read_tables

MONEY = "$¢£¤¥\u20a0-\u20cf"
SIGNS_WITH_WORDS = frozenset("$€£")  # signs of money for which a translation may have a word
TIME_ZONE = r"(?:[CEMP][DS]?T|[CEW]ES?T|BST|GMT|IST|JST|MES?Z|UTC)(?:[+-]\d{1,2})?"
ISO_4217 = "(?:AUD|BRL|BTC|CAD|CHF|CNY|CZK|DKK|ETH|EUR|GBP|HUF|INR|JPY|KRW|MXN|NOK|PLN|RON|RUB|SEK|TRY|USD)"
PERIODS = (
    r"(?:day|hour|month|night|person|user|week|year|Jahr|Monat|Nacht|Person|Stunde|Tag|Woche|an|heure"
    r"|jour|mois|nuit|personne|semaine)\b"
)
PERIOD = re.compile(rf"(?<=[\d}}{MONEY}])/(?={PERIODS})")
_EMOJI_CHARACTER = (
    "\u203c\u2049\u2122\u2139\u2190-\u23ff\u2500-\u2bff\u303d\u3297\u3299\u4dc0-\u4dff"  # with bars, Braille
    "\U0001f000-\U0001faff\u00a9\u00ae"
    "\ue000-\uf8ff\ufffc\ufffd\U000f0000-\U0010ffff"  # private use and replacement characters: models know none
)
_EMOJI_ONE = rf"[{_EMOJI_CHARACTER}][\ufe0e\ufe0f\U0001f3fb-\U0001f3ff]?[\U000e0020-\U000e007f]{{0,10}}"
_TABLES = read_tables("patterns.toml")["spans"]
_EMOJI = "|".join(_TABLES["emoji"]).replace("{one}", _EMOJI_ONE)
_ADDRESS = (
    rf"(?:[A-Za-z][A-Za-z0-9+.-]{{1,15}}://|(?<![\w.@])(?i:www)\.)[^\s<>\"`{WIDE}]++"
    r"|(?<=\]\()[^\s()<>]++(?=\))"  # of a link: [text](page)
)
_FIELD_OF_FORM = filled("|".join(_TABLES["fields"]), _TABLES)
_TEMPLATE = "|".join([*_TABLES["templates"], _FIELD_OF_FORM])
_NOTE = "(?:[¹²³⁰⁴-⁹]{1,3}|[†‡]{1,3})"
_TAG = "|".join(_TABLES["tags"]).replace("{note}", _NOTE)
# Letters of a unit of measurement, as in 10km and 4k. Not those of an ordinal number, a plural or a time: 80ern, 5pm.
_UNIT_LETTERS = r"(?!(?:st|nd|rd|th|a|o|e(?:n|r[ns]?)?|re|d[ae]|te[nrs]?|mal|s|h|[ap]m)(?!\w))[a-z]{1,3}(?![A-Za-z])"
_SEPARATOR = rf"[.,:/’'{GROUP_SPACES}×-]"
_NUMBER = (
    rf"(?<![A-Za-z0-9_])(?:(?<![\w)\].])(?:[-+\u2212]|(?<!\d )[±≤≥~≈][ \u00a0]?)(?=[\d{MONEY}]))?"
    rf"(?:(?:[A-Z]{{0,2}}[{MONEY}§]|(?<!\w){ISO_4217})[ \u00a0]?(?=\d))?"
    rf"\d{{1,300}}+(?:(?={_SEPARATOR}\d){_SEPARATOR}\d{{1,300}}+){{0,31}}+(?:[eE][-+\u2212]?\d{{1,4}}(?![\w-]))?"
    r"(?:(?:(?<=\b10)|(?=[⁺⁻]))[⁺⁻]?[⁰¹²³⁴-⁹]{1,3})?"  # 10⁶ and 10⁻³
    r"(?!(?:st|nd|rd|th)\b|(?!AM\b|PM\b)[A-Z]|[a-z]{1,8}[A-Z\d]|_|@|[-/.][A-Za-z]{1,8}\d"
    rf"|\.[a-z_]|{_UNIT_LETTERS})"
    rf"(?:[ \u00a0\u202f]?(?:(?:%%|[%‰{MONEY}])(?![\w({{])|(?:°[CF]?|{ISO_4217})(?!\w))|[+#](?![\w+#]))?"
)
_ENCLOSED = "\u2460-\u24ff\u3200-\u32ff"  # numbers and letters in circles and brackets
_SIGNS = rf"[{_ENCLOSED}](?: ?[{_ENCLOSED}])+"  # models copy one of them, and repeat or lose some of several
_SCHOLARLY = r"\b(?:et al|loc\. cit|op\. cit)\b\.?"
_DATE = "|".join(_TABLES["dates"]).replace("{field}", _TABLES["field"])
_OTHER, _COMMAND, _BRACKET, _PLACE = map("|".join, map(_TABLES.get, ("others", "commands", "brackets", "addresses")))
_EXPRESSION = "|".join([rf"(?<![\w-])(?:(?:{_COMMAND})(?!\w)|{_TABLES['sql']})", *_TABLES["expressions"]])
_BREAK = rf"\s()\[\]{{}}<`\"“”„«»‹›,*—–…{WIDE}{_EMOJI_CHARACTER}"
_NOT_NAMED = "".join(rf"(?<!%\w{{{length}}}%s)" for length in range(3, 31))  # %name%s
_GLUED = (  # %1$sHere%2$s, but not in 100%safe and %%s
    r"(?<![%\d])%(?:\d{1,2}\$)?s(?:(?=[^\W\d_]{3})(?!\w{1,40}%(?![s\d]))"
    rf"|(?:(?<=[^\W\d_]{{3}}%s){_NOT_NAMED}|(?<=[^\W\d_]{{3}}%\d\$s))(?!\w))"
)
_BEGIN = rf"{_GLUED}|[$#%@]\{{|&nbsp;|~~|-{{4}}|={{4}}|(?<=[^\W\d_]{{3}}){_NOTE}"  # of another span
_LETTER = rf"(?!{_BEGIN})[^{_BREAK}]"
_WORD = rf"(?:<{{1,3}}[^{_BREAK}]*+|(?:{_LETTER}|(?<=\w)[≠≤-≧](?=\w))+)(?:\([^{_BREAK}]*+\)[^{_BREAK}]*+)*"
SPAN = re.compile(
    rf"(?P<glued>{_GLUED})|(?=[A-ZÄÖÜ])(?:{_PLACE})"
    rf"|(?P<prose>(?!{_COMMAND}|{_SCHOLARLY})[A-Z]?[a-z]++(?<!allee)(?<!gasse)(?= (?!Str\.|Stra(?:ß|ss)e \d)\w))"
    rf"|(?P<memoq>\{{\d{{1,3}}>|<\d{{1,3}}\}})|(?P<brace>[$#%@]?\{{|%%)|{_DATE}|(?P<template>{_TEMPLATE})"
    rf"|(?P<address>{_ADDRESS})|(?P<emoji>{_EMOJI})|(?P<tag>{_TAG})|(?P<argument>{_TABLES['argument']})|(?P<expression>{_EXPRESSION})"
    rf"|{_BRACKET}|{LETTER_SYMBOL}|{_SIGNS}|{_OTHER}|{_SCHOLARLY}"
    rf"|(?P<phone>{_TABLES['phone']})|(?P<number>{_NUMBER})|(?P<word>{_WORD})"
)
NUMBERS = re.compile(_NUMBER)
PROSE = re.compile(r"[$#%@]?\{\s*[^\W\d_]+\s+\w")
CODE = re.compile("|".join(read_tables("patterns.toml")["words"]).replace("{letters}", _UNIT_LETTERS))
_BESIDE = rf"[\w./:@+=§<>{MONEY}–-]"
PLACEHOLDER = re.compile(  # or a word that has one, such as user{id}@example.com, v%s and €$t(key)
    rf"(?:{_BESIDE}*+(?:[$#%@]?\{{{{1,3}}[^{{}}]*\}}{{1,3}}|(?<!\d)%(?:\d\$)?[ds](?![^\W_])|\$t\([^()]*\))){{1,9}}{_BESIDE}*+"
    rf"|[$#%@]?\{{.*\}}|{_FIELD_OF_FORM}|%(?:\W*[\w(].*|@)|\$\w+\$?|:[a-z]\w*|<[A-Za-z%?].*>|&\w+;|__\w+__|\[\[.*\]\]|⟦.*⟧|«\w+»|[{OBJECTS}]+",
    re.DOTALL,
)
FORMAT = re.compile(r"%(?:\d+\$|\(\w+\))?[-+ #0,']*+\d*+(?:\.\d+)?(?:hh|ll|[hlqzjt])?([A-Za-z@])")
"""A directive of printf. Its last letter is its end, whatever follows: `%ss` is `%s` and an `s`."""

_HINT = rf"[\d@#\[`{{<>&%\\|^*_+°~¹²³¼-¾⅐-⅞⁰⁴-⁹ⁿ₀-₉†‡⟦\u2102-\u2138{_ENCLOSED}{MONEY}{_EMOJI_CHARACTER}]"
HINTS = (  # fast tests, without a match in most sentences without spans
    re.compile(rf"[A-Z.:;=/({_HINT[1:-1]}-](?:(?<={_HINT})|{'|'.join(_TABLES['hints'])})"),
    re.compile("|".join(_TABLES["other_hints"])),
    re.compile(r"[DFYdjlMmny][ ,/.-]{1,2}[DFYdjlMmny](?!\w)"),
)
VERSION = re.compile(r"\.(?!\d{3}(?!\d))\d+\.")  # two dots with one, two or more than three digits between them
EXACT = re.compile(r"\d[eE][-+\u2212]?\d|\d['’](?!\d{3}(?!\d))\d|%%")  # in every language: 1.5e-3, 5'4 (feet), 50%%
UNIT = re.compile(rf"[¼-¾⅐-⅞]|[±≤≥~≈]|[A-Z]{{0,2}}[{MONEY}§]|[%‰]|°[CF]?|{ISO_4217}|[+#]$")
