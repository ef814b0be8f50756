"""Count the items that translations lose, change or move, by class.

Usage: python -m scripts.attack.text_integrity.measure MODEL [--source en --target de]

MODEL is a model directory that translates from English. Of the sentences, development.txt was used for writing rules
and held_out.txt was not. The script uses only `mt.Translator`, so it also measures other versions of the project.
"""

import argparse
import re
import tomllib
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mt import Translator

FOLDER = Path(__file__).parent
LEAST_TEXTS = 40
_AMOUNT = re.compile(r"([$€£]?)(\d{1,3}(?:,\d{3})*(?:\.\d+)?)(%?)")


@dataclass(frozen=True)
class Case:
    """A source text and the items that its translation must hold, in order."""

    group: str
    text: str
    items: tuple[str, ...]


def item_cases() -> Iterator[Case]:
    """Yield at least LEAST_TEXTS cases of each class of items.toml."""
    content = tomllib.loads((FOLDER / "items.toml").read_text(encoding="utf-8"))
    carriers: list[str] = content["carriers"]
    for group, entries in content["classes"].items():
        rounds = max(2, -(-LEAST_TEXTS // len(entries)))
        for turn in range(rounds):
            for number, entry in enumerate(entries):
                items = [entry] if isinstance(entry, str) else entry
                carrier = carriers[(number + 3 * turn) % len(carriers)]
                yield Case(group, carrier.replace("{}", " and ".join(items)), tuple(items))


def sentence_cases(name: str = "sentences.txt", prefix: str = "") -> Iterator[Case]:
    """Yield the cases of a file in this folder. `prefix` begins the names of their classes."""
    for line in (FOLDER / name).read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            group, marked = line.split("\t")
            yield Case(prefix + group, re.sub("[«»]", "", marked), tuple(re.findall("«([^»]*)»", marked)))


def judge(case: Case, translation: str) -> Counter[str]:
    """Count the preserved, localized, lost, changed and moved items of a translation.

    A localized number has the notation of German: 1.200,50 for 1,200.50, 5 % for 5%, and 70 $ for $70. The translation
    contains no part of a lost item, and a part of two characters or more of a changed item.
    """
    counts = Counter[str]()
    places: list[int] = []
    ends: dict[str, int] = defaultdict(int)
    for item in case.items:
        match = _whole(item).search(translation, ends[item])
        if not match and (amount := _AMOUNT.fullmatch(item)):
            sign, number = amount[1], amount[2].translate(str.maketrans(",.", ".,"))
            forms = [f"{number} %"] if amount[3] else [f"{sign}{number}", f"{number} {sign}".rstrip()]
            matches = (_whole(form).search(translation, ends[item]) for form in forms)
            match = next(filter(None, matches), None)
            counts["localized"] += match is not None
        if match:
            places.append(match.start())
            ends[item] = match.end()
        else:
            parts = re.findall(r"\w{2,}|\d", item)
            counts["changed" if any(part in translation for part in parts) else "lost"] += 1
    rising: list[int] = []
    for place in places:
        at = bisect_left(rising, place)
        rising[at : at + 1] = [place]
    counts["moved"] = len(places) - len(rising)
    counts["preserved"] = len(rising) - counts["localized"]
    return counts


def _whole(item: str) -> re.Pattern[str]:
    """Return a pattern of an item that is no part of a longer number or word."""
    before, after = (r"\d" if end.isdigit() else r"\w" if end.isalpha() else r"[^\s\S]" for end in (item[0], item[-1]))
    return re.compile(f"(?<!{before}){re.escape(item)}(?!{after})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--source", help="source language of a model with several")
    parser.add_argument("--target", help="target language of a model with several")
    parser.add_argument("--show", action="store_true", help="print the translations with lost, changed or moved items")
    options = parser.parse_args()
    cases = [*item_cases(), *sentence_cases()]
    others = [*sentence_cases("development.txt", "development "), *sentence_cases("held_out.txt", "held-out ")]
    translations = Translator.load(options.model, "cpu").translate_many(
        [case.text for case in [*cases, *others]], source=options.source, target=options.target
    )
    table: dict[str, Counter[str]] = defaultdict(Counter)
    for case, translation in zip([*cases, *others], translations, strict=True):
        counts = judge(case, translation.text)
        table[case.group] += counts + Counter(texts=1)
        if options.show and counts["preserved"] + counts["localized"] < len(case.items):
            print(case.group, case.text, translation.text, sep="\n  ")
    columns = ("texts", "preserved", "localized", "lost", "changed", "moved")
    print("| class |", *(f"{column} |" for column in columns))
    sums = {
        "10 classes": {case.group for case in item_cases()},
        "running sentences": {case.group for case in cases} - {case.group for case in item_cases()},
        "development sentences": {case.group for case in others if case.group.startswith("development ")},
        "held-out sentences": {case.group for case in others if case.group.startswith("held-out ")},
    }
    totals = [(name, sum((table[group] for group in groups), Counter[str]())) for name, groups in sums.items()]
    for group, counts in [*table.items(), *totals]:
        print(f"| {group} |", *(f"{counts[column]} |" for column in columns))


if __name__ == "__main__":
    main()
