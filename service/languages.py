"""Languages that the models translate, directly or through a pivot language."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from mt.languages import Direction, DirectionSet, closest_language, language_name
from service.errors import UnsupportedLanguage, shorten

PIVOT = "en"  # preferred over other pivot languages
MAX_LISTED = 20  # languages in an error message

TranslationRoute = tuple[Direction, ...]
"""Directions to apply one after the other: one, or two through a pivot language; empty if source equals target."""


class TranslationRoutes:
    """Language pairs that the given models can translate. The pairs are not stored: there may be 200 x 200."""

    def __init__(self, models: Iterable[DirectionSet]) -> None:
        models = tuple(models)
        self.languages = tuple(sorted({tag for model in models for tag in (*model.sources, *model.targets)}))
        self.target_languages = tuple(sorted({tag for model in models for tag in model.targets}))
        self.default_target = next((model.targets[0] for model in models if model.targets), "")
        self._direct: dict[str, set[str]] = defaultdict(set)  # targets of each source that need no pivot
        for model in models:
            if model.pairs is None:
                for source in model.sources:
                    self._direct[source].update(model.targets)
            for direction in model.pairs or ():
                self._direct[direction.source].add(direction.target)
        for source, targets in self._direct.items():
            targets.discard(source)
        self.source_languages = tuple(sorted(self._direct))
        self._targets: dict[str, tuple[str, ...]] = {}  # cache of `targets_of`
        self._routes: dict[tuple[str, str], TranslationRoute] = {}  # cache of `find`

    def targets_of(self, source: str) -> tuple[str, ...]:
        """Return the languages into which `source` can be translated, directly or through a pivot."""
        if source not in self._targets:
            direct = self._direct.get(source, set())
            targets = set(direct)
            if not direct | {source} >= set(self.target_languages):
                targets.update(*(self._direct.get(pivot, ()) for pivot in direct))
            self._targets[source] = tuple(sorted(targets - {source}))
        return self._targets[source]

    def sources_of(self, target: str) -> tuple[str, ...]:
        """Return the languages that can be translated into `target`, directly or through a pivot."""
        direct = {source for source in self.source_languages if target in self._direct[source]}
        return tuple(
            source
            for source in self.source_languages
            if source != target and (source in direct or not direct.isdisjoint(self._direct[source]))
        )

    def find(self, source: str, target: str) -> TranslationRoute:
        """Return the route of a language pair: direct if a model translates the pair, otherwise through a pivot.

        If both languages are equal, the route is empty.

        Raises: UnsupportedLanguage if a language is unknown, or no route leads from the source to the target.
        """
        pair = source, target
        if pair not in self._routes:
            self._routes[pair] = self._find(source, target)
        return self._routes[pair]

    def _find(self, source: str, target: str) -> TranslationRoute:
        if source not in self.languages:
            self.check_supported(source, target)
        accepted = listing(self.targets_of(source)) or "none"  # after the check: `targets_of` keeps what it is asked
        if target not in self.languages:
            raise UnsupportedLanguage(f"{shorten(target)} is not supported", accepted=accepted)
        if source == target:
            return ()
        direct = self._direct.get(source, set())
        if target in direct:
            return (Direction(source, target),)
        pivots = sorted((tag for tag in direct if target in self._direct.get(tag, ())), key=pivot_order)
        if pivots:
            return (Direction(source, pivots[0]), Direction(pivots[0], target))
        problem = f"{describe(target)} is not available as a target language from {describe(source)}"
        raise UnsupportedLanguage(problem, accepted=accepted)

    def check_supported(self, *codes: str) -> None:
        """Raise UnsupportedLanguage if a code is unknown. The message lists the unknown and the known languages."""
        unknown = [code for code in dict.fromkeys(codes) if code not in self.languages]
        if unknown:
            first, *more = (f"{shorten(code)} is not supported" for code in unknown)
            raise UnsupportedLanguage(first, accepted=listing(self.languages), more=more)

    def resolve_supported(self, *codes: str) -> tuple[str, ...]:
        """Return the models' codes of languages. Raises: UnsupportedLanguage if a language is unknown."""
        languages = tuple(map(self.resolve, codes))
        self.check_supported(*languages)
        return languages

    def resolve(self, code: str) -> str:
        """Return the models' code of a language that a client calls `code`: `pt-BR` for `pb`, `en` for `en_US`.

        An unknown code is returned unchanged.
        """
        return closest_language(code, self.languages) or code


def describe(code: str) -> str:
    """Return the name and the code of a language, such as `German (de)`."""
    return f"{language_name(code)} ({code})"


def listing(items: Sequence[object]) -> str:
    """Return a text with the first MAX_LISTED items, separated by commas, and the number of the other items."""
    more = len(items) - MAX_LISTED
    return ", ".join(map(str, items[:MAX_LISTED])) + (f" and {more} more (GET /languages)" if more > 0 else "")


def pivot_order(code: str) -> tuple[bool, str]:
    """Return the sort key of a pivot language: PIVOT comes first, then the others by code."""
    return code != PIVOT, code
