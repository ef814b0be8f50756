"""DeepL's language codes and ours: EN-GB and EN-US are `en`, PT-BR is `pb`, ZH-HANT is `zt`."""

from collections.abc import Collection, Iterable, Sequence

from service.access.glossaries import Pair
from service.errors import UnsupportedLanguage, shown
from service.languages import NAMES, Direction

_OURS: dict[str, tuple[str, ...]] = {
    "NB": ("nb", "no"),
    "NO": ("no", "nb"),
    "PT": ("pt", "pb"),
    "PT-BR": ("pb", "pt"),
    "PT-PT": ("pt",),
    "ZH": ("zh", "zt"),
    "ZH-CN": ("zh",),
    "ZH-HANS": ("zh",),
    "ZH-HANT": ("zt",),
    "ZH-HK": ("zt",),
    "ZH-TW": ("zt",),
}
"""What each may be among our codes, the best first; every other code is its own language, whatever the region."""

_AS_SOURCE = {"no": "NB", "pb": "PT", "zt": "ZH"}
_AS_TARGETS: dict[str, tuple[str, ...]] = {
    "en": ("EN-GB", "EN-US"),
    "no": ("NB",),
    "pb": ("PT-BR",),
    "pt": ("PT-PT",),
    "zh": ("ZH", "ZH-HANS"),
    "zt": ("ZH-HANT",),
}
_REGIONAL_NAMES = {
    "EN-GB": "English (British)",
    "EN-US": "English (American)",
    "NB": "Norwegian",
    "PT": "Portuguese",
    "PT-BR": "Portuguese (Brazilian)",
    "PT-PT": "Portuguese (European)",
    "ZH": "Chinese",
    "ZH-HANS": "Chinese (simplified)",
    "ZH-HANT": "Chinese (traditional)",
}


def source_code(ours: str) -> str:
    """`EN` for `en`."""
    return _AS_SOURCE.get(ours, ours.upper())


def source_languages(pairs: Iterable[Direction]) -> list[tuple[str, str]]:
    """Code and English name of each language that can be translated."""
    codes = {source_code(pair.source): pair.source for pair in pairs}
    return _named(codes)


def target_languages(pairs: Iterable[Direction]) -> list[tuple[str, str]]:
    """Code and English name of each language that can be translated into, variants apart."""
    targets = {pair.target for pair in pairs}
    return _named({code: ours for ours in targets for code in _AS_TARGETS.get(ours, (ours.upper(),))})


def glossary_pairs(pairs: Iterable[Direction]) -> list[Pair]:
    return sorted({Pair.of(pair.source, pair.target) for pair in pairs})


def our_source(code: str, pairs: Sequence[Direction]) -> str:
    """Raises UnsupportedLanguage, in DeepL's words."""
    return _ours("source_lang", code, {pair.source for pair in pairs}, source_languages(pairs))


def our_target(code: str, pairs: Sequence[Direction]) -> str:
    """Raises UnsupportedLanguage, in DeepL's words."""
    return _ours("target_lang", code, {pair.target for pair in pairs}, target_languages(pairs))


def our_pair(source: str, target: str, pairs: Sequence[Direction]) -> Pair:
    """The languages of a glossary. Raises UnsupportedLanguage."""
    pair = Pair.of(our_source(source, pairs), our_target(target, pairs))
    known = glossary_pairs(pairs)
    if pair not in known:
        accepted = ", ".join(f"{each.source}-{each.target}" for each in known)
        raise UnsupportedLanguage(
            f"Unsupported glossary source and target language pair: {'-'.join(pair)}; accepted: {accepted}"
        )
    return pair


def _ours(field: str, code: str, known: Collection[str], listed: Sequence[tuple[str, str]]) -> str:
    wanted = code.strip().upper().replace("_", "-")
    for ours in _OURS.get(wanted, (wanted.partition("-")[0].lower(),)):
        if ours in known:
            return ours
    accepted = ", ".join(name for name, _ in listed)
    raise UnsupportedLanguage(f"Value for '{field}' not supported: {shown(code)!r}; accepted: {accepted}")


def _named(codes: dict[str, str]) -> list[tuple[str, str]]:
    return sorted((code, _REGIONAL_NAMES.get(code) or NAMES.get(ours, ours)) for code, ours in codes.items())
