"""The text of the starter model: files of pairs made by rules from corpora (docs/starter.md describes the rules).

    python -m scripts.starter corpora DATA data/starter

DATA has the folders `tatoeba`, `docs`, `laws` and `web` with `train.en-de.tsv.xz`, `dev.en-de.tsv.xz` and the same of
en-fr (laws: only en-fr). Their columns are an English text, its translation and, in `web`, the name of its source. The
same corpora and SEED give the same files.
"""

import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from mt.bundled import STARTER_MODEL
from mt.data.cleaning import Cleaner
from mt.data.corpus import read_lines
from mt.data_config import CleaningConfig
from mt.errors import DataError
from mt.text.normalise import normalise_training_text
from mt.text.phrases import PHRASES_FILE
from mt.text.segment import split_text

CorpusPair = tuple[str, str]
Text = dict[str, dict[str, list[CorpusPair]]]
"""Pairs by name of the corpus, then by pair of languages, such as "en-de"."""

SEED = 1
PAIRS = ("en-de", "en-fr", "de-fr")
FOLDERS = ("tatoeba", "docs", "laws", "web")
WEB = {
    "debian": ("webwml-old", "webwml-mit"),
    "mlqe": ("mlqe",),
    "pawsx": ("pawsx",),
    "unciv": ("unciv",),
    "other": ("cdsblog", "infobase", "mozwww", "osguide", "sdg"),
    "lexicon": ("cpv", "cldr", "eurovoc", "geo", "idtag"),
}
"""The sources of `web` in each corpus."""
CORPUS_OF = {source: name for name, sources in WEB.items() for source in sources}

SHORT_WORDS = 3
"""A translation of so few words may also be the translation of a development line."""
COMMON_DOCS, OTHER_DOCS = 90_000, 22_000
LAWS, LAW_WORDS = 40_000, range(4, 41)
FRAGMENTS, COPIES, NAMES = 25_000, 16_000, 4_000
RARE = 3
"""Maximum number of pairs with a rare name."""
VALID, JOINED_VALID = 100, 300
"""Numbers of validation pairs: of each folder, and from German to French."""

SPACE_BEFORE = {"en": r",.;:!?)", "de": r",.;:!?)", "fr": r",.)"}
"""Punctuation before which a space is what removed markup has left."""
SPLITS = (re.compile(r"\s*:\s+"), re.compile(r"\s+[–—-]\s+"), re.compile(r"\s*;\s+"))
INSIDE = (re.compile(r"\(([^()]+)\)"), re.compile(r"\*\*([^*]+)\*\*"))
CODE = re.compile(r"[\\/_<>{}\[\]=]|\w[.]\w|^\W*\d[\d\W]*$")
COMMON_NAMES = re.compile(r"\b(?:Tom|John|Alice|Boston)\b")
NAME = re.compile(r"(?<=[a-zäöüßàâçéèêëîïôûù,] )[A-Z][a-zà-öø-ÿ]{3,}(?:-[A-Z][a-zà-öø-ÿ]+)?\b")


class Development:
    """The lines of all development sets, and the pairs that they allow in the training text."""

    def __init__(self, data: Path) -> None:
        self.pairs: dict[tuple[str, str], list[CorpusPair]] = {}  # by folder and pair of languages
        self.texts: dict[str, set[str]] = defaultdict(set)  # by language
        for folder in FOLDERS:
            for languages in PAIRS[:2]:
                rows = [(english, other) for english, other, _ in read(data / folder / f"dev.{languages}.tsv.xz")]
                self.pairs[folder, languages] = rows
                self.texts["en"].update(english for english, _ in rows)
                self.texts[languages[3:]].update(text for _, text in rows if len(text.split()) > SHORT_WORDS)

    def joined(self) -> list[CorpusPair]:
        """Return the German-French pairs of all folders of which no sentence may be in the training text."""
        joined = [pair for folder in FOLDERS for pair in join(*(self.pairs[folder, name] for name in PAIRS[:2]))]
        return [(de, fr) for de, fr in dict.fromkeys(joined) if de in self.texts["de"] and fr in self.texts["fr"]]

    def allows(self, pair: CorpusPair, languages: str) -> bool:
        return not any(text in self.texts[name] for text, name in zip(pair, languages.split("-"), strict=True))


def read(path: Path, select: Callable[[list[str]], list[str]] = list) -> list[tuple[str, str, str]]:
    """Return (English, translation, source) of the lines of a file that `select` leaves, normalised.

    A file that does not exist has no lines.
    """
    if not path.exists():
        return []
    rows = (line.split("\t") for line in select(list(read_lines(path))))
    return [
        (normalise_training_text(row[0]), normalise_training_text(row[1]), row[2] if len(row) > 2 else "")
        for row in rows
    ]


def join(german: Iterable[CorpusPair], french: Iterable[CorpusPair]) -> list[CorpusPair]:
    """Return the pairs of the first German and the first French translation of each English text."""
    first: list[dict[str, str]] = [{}, {}]
    for translations, pairs in zip(first, (german, french), strict=True):
        for english, text in pairs:
            translations.setdefault(english, text)
    return [(text, first[1][english]) for english, text in first[0].items() if english in first[1]]


# The corpora


def some_laws(lines: list[str]) -> list[str]:
    fits = [line for line in lines if all(len(text.split()) in LAW_WORDS for text in line.split("\t")[:2])]
    return random.Random(SEED).sample(fits, min(LAWS, len(fits)))


def some_docs(docs: dict[str, list[CorpusPair]], choice: random.Random) -> dict[str, list[CorpusPair]]:
    """Return one pair for each of some English texts: first those with translations into both languages."""
    translations = {languages: dict(reversed(pairs)) for languages, pairs in docs.items()}
    common = [text for text in translations["en-de"] if text in translations["en-fr"]]
    chosen = choice.sample(common, min(COMMON_DOCS, len(common)))
    result = {}
    for languages, texts in translations.items():
        others = sorted(texts.keys() - common)
        selected = [*chosen, *choice.sample(others, min(OTHER_DOCS, len(others)))]
        result[languages] = [(english, texts[english]) for english in selected]
    return result


def without_spaces_of_markup(text: str, language: str) -> str:
    text = re.sub(rf"(?<=\w) +(?=[{re.escape(SPACE_BEFORE[language])}](?:\s|$))", "", text)
    return text.replace("( ", "(")


def fragments(pairs: Iterable[CorpusPair], languages: str) -> Iterator[CorpusPair]:
    """Yield the parts of pairs that probably translate each other."""
    names = languages.split("-")
    cleaner = Cleaner(CleaningConfig(), (names[0], names[1]))
    for pair in pairs:
        for sides in parts(pair, names):
            for source, target in zip(*sides, strict=True):
                source, target = source.strip(" *`"), target.strip(" *`")
                if similar(source, target) and (source, target) != pair and not cleaner.reason(source, target):
                    yield source, target


def parts(pair: CorpusPair, languages: Sequence[str]) -> Iterator[Sequence[list[str]]]:
    """Yield the parts of both texts, for each rule that divides both into the same number of parts."""
    divided = [[pattern.split(text) for text in pair] for pattern in SPLITS]
    enclosed = [[pattern.findall(text) for text in pair] for pattern in INSIDE]
    yield from (sides for sides in divided if len(sides[0]) == len(sides[1]) == 2)
    yield from (sides for sides in enclosed if len(sides[0]) == len(sides[1]))
    if all(re.search(r"[.!?] +\w", text) for text in pair):
        sentences = [
            [part.text for part in split_text(text, name) if part.text.strip()]
            for text, name in zip(pair, languages, strict=True)
        ]
        if len(sentences[0]) == len(sentences[1]) > 1:
            yield sentences


def similar(source: str, target: str) -> bool:
    """Return whether two parts have similar lengths and neither is code, an address or a number."""
    short, long = sorted((len(source), len(target)))
    return short > 2 and long <= 1.4 * short + 6 and not CODE.search(source) and not CODE.search(target)


def forms(terms: Iterable[CorpusPair], languages: str, choice: random.Random) -> Iterator[CorpusPair]:
    """Yield each term in lower case (German: as it is), with a capital, or with a full stop, if that changes it."""
    small_and_capital = (str.lower, str.upper)
    for pair in terms:
        change = choice.choice((*small_and_capital, None))
        if change is None:
            new = [text if text.endswith(".") else f"{text}." for text in pair]
        else:
            new = [
                text if (name == "de" and change is str.lower) or text[1:2].isupper() else change(text[0]) + text[1:]
                for text, name in zip(pair, languages.split("-"), strict=True)
            ]
        if (changed := (new[0], new[1])) != pair:
            yield changed


def rare_names(text: Text, languages: str) -> list[str]:
    """Return the names within sentences that occur on both sides of one to RARE pairs of the web corpora.

    A word that is elsewhere in lower case is no name.
    """
    count: Counter[str] = Counter()
    words: set[str] = set()
    for name in ("tatoeba", "docs", "debian", "mlqe", "pawsx", "unciv", "other"):
        for english, other in text[name][languages]:
            words.update(re.findall(r"\b[a-z]{4,}\b", english))
            if name not in ("tatoeba", "docs"):
                count.update({*NAME.findall(english)} & {*NAME.findall(other)})
    return [name for name, number in count.items() if number <= RARE and name.lower() not in words]


def copies(text: Text, languages: str, choice: random.Random) -> Iterator[CorpusPair]:
    """Yield sentences with rare names in place of common ones, then rare names alone."""
    rare = rare_names(text, languages)
    if not rare:
        return
    pairs = [
        pair
        for pair in text["tatoeba"][languages]
        if (names := COMMON_NAMES.findall(pair[0])) and Counter(names) == Counter(COMMON_NAMES.findall(pair[1]))
    ]
    for pair in choice.sample(pairs, min(COPIES, len(pairs))):
        new = {name: choice.choice(rare) for name in COMMON_NAMES.findall(pair[0])}
        yield renamed(pair[0], new), renamed(pair[1], new)
    yield from ((name, name) for name in choice.sample(rare, min(NAMES, len(rare))))


def renamed(text: str, new: dict[str, str]) -> str:
    return COMMON_NAMES.sub(lambda match: new[match[0]], text)


def phrases() -> dict[str, list[CorpusPair]]:
    """Return the phrases written by hand, with and without a full stop."""
    languages, *rows = [line.split("\t") for line in read_lines(STARTER_MODEL / PHRASES_FILE)]
    rows = [[text[0].upper() + text[1:] for text in row] for row in rows]
    rows += [[f"{text}." for text in row] for row in rows if all(text[-1].isalpha() for text in row)]
    return {name: [(row[languages.index(name[:2])], row[languages.index(name[3:])]) for row in rows] for name in PAIRS}


# All files


def make(data: Path) -> tuple[Text, Development]:
    """Return the training text, and the development lines, of which none is in it."""
    development, choice = Development(data), random.Random(SEED)
    text: Text = defaultdict(dict)
    for languages in PAIRS[:2]:
        for folder in FOLDERS[:3]:
            path = data / folder / f"train.{languages}.tsv.xz"
            rows = read(path, some_laws if folder == "laws" else list)
            text[folder][languages] = [row[:2] for row in rows if development.allows(row[:2], languages)]
        for name in WEB:
            text[name][languages] = []
        for english, other, source in read(data / "web" / f"train.{languages}.tsv.xz"):
            if source not in CORPUS_OF:
                raise DataError(f"web: the source {source!r} is unknown; accepted: {', '.join(CORPUS_OF)}")
            if not development.allows((english, other), languages):
                continue
            if source in ("webwml-old", "webwml-mit"):
                english = without_spaces_of_markup(english, "en")
                other = without_spaces_of_markup(other, languages[3:])
            text[CORPUS_OF[source]][languages].append((english, other))
    text["docs"] = some_docs(text["docs"], choice)
    for name in ("tatoeba", "docs", *WEB):
        text[name]["de-fr"] = join(text[name]["en-de"], text[name]["en-fr"])
    for languages in PAIRS:
        sentences = (pair for name in ("docs", *WEB) if name != "lexicon" for pair in text[name][languages])
        terms = forms(text["lexicon"][languages], languages, choice)
        candidates = list(fragments(sentences, languages))
        text["fragments"][languages] = [*choice.sample(candidates, min(FRAGMENTS, len(candidates))), *terms]
    for languages in PAIRS[:2]:
        text["copies"][languages] = list(copies(text, languages, choice))
    text["phrases"] = phrases()
    for corpora in text.values():
        for languages, pairs in corpora.items():
            corpora[languages] = [pair for pair in dict.fromkeys(pairs) if development.allows(pair, languages)]
    return text, development


def validation(development: Development) -> Text:
    """Return the validation pairs of the training, and `joined`: the other German-French development pairs."""
    choice = random.Random(SEED)
    text: Text = {"valid": {}, "joined": {}}
    for languages in PAIRS[:2]:
        sets = [development.pairs[folder, languages] for folder in ("tatoeba", "docs", "web")]
        text["valid"][languages] = [pair for pairs in sets for pair in choice.sample(pairs, min(VALID, len(pairs)))]
    joined = development.joined()
    choice.shuffle(joined)
    text["valid"]["de-fr"], text["joined"]["de-fr"] = joined[:JOINED_VALID], joined[JOINED_VALID:]
    return text


def write_corpora(data: Path, out: Path) -> None:
    """Make the files of the recipe in `out`, and print the number of pairs of each; each serves two directions.

    Raises: DataError if `data` has no corpus, or a text of `web` is from an unknown source.
    """
    if not any((data / folder).is_dir() for folder in FOLDERS):
        raise DataError(f"{data} has no corpus; accepted: a folder with {', '.join(FOLDERS)}")
    out.mkdir(parents=True, exist_ok=True)
    text, development = make(data)
    print("| corpus | " + " | ".join(f"{name} and {name[3:]}-{name[:2]}" for name in PAIRS) + " |\n|---|---|---|---|")
    for name, corpora in (text | validation(development)).items():
        for languages, pairs in corpora.items():
            lines = (f"{source}\t{target}\n" for source, target in pairs)
            if pairs:
                (out / f"{name}.{languages}.tsv").write_text("".join(lines), encoding="utf-8")
        print(f"| `{name}` | " + " | ".join(f"{len(corpora.get(languages, ())):,}" for languages in PAIRS) + " |")
