"""What is to be translated of each text: its language told, its markup taken apart."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from mt.text.markup import Markup, Range, Segment, Translated, parse_html, parse_xml
from service.languages import PIVOT, Route, Routes, described
from service.translation.assembly import links, ranked, unchanged, weighted
from service.translation.jobs import Answer, Detected, Format, Job

LOOKED_AT = 4000  # characters of a text by which its language is told
SURE = 0.8  # a language told so surely is not passed over for another that can be translated


@dataclass(frozen=True)
class Unit:
    """A text for the models, and the ranges of it that come back as they are."""

    text: str
    kept: tuple[Range, ...] = ()
    linked: bool = False  # whether the alignment of its words is wanted

    @property
    def blank(self) -> bool:
        """Whether there is neither a letter nor a digit in it."""
        return not any(map(str.isalnum, self.text))


@dataclass(frozen=True)
class Prepared:
    """A text of a job. Its units are to be translated along the route, if it has one."""

    text: str
    source: str
    detected: Detected | None
    route: Route
    units: tuple[Unit, ...]
    markup: Markup | None = None

    def answer(self, found: Sequence[Answer]) -> Answer:
        """Of answers for the units. Takes time for much markup."""
        if not self.route:
            whole = unchanged(self.text, self.source)
        elif self.markup is None:
            whole = found[0]
        else:
            whole = self._rendered(self.markup, found)
        return replace(whole, detected=self.detected)

    def _rendered(self, markup: Markup, found: Sequence[Answer]) -> Answer:
        text = markup.render([Translated(answer.text, links(answer)) for answer in found])
        alternatives: dict[str, None] = {}
        for rank in range(max((len(answer.alternatives) for answer in found), default=0)):
            chosen = [ranked(answer, rank + 1) for answer in found]
            alternatives[markup.render(list(map(Translated, chosen)))] = None
        alternatives.pop(text, None)
        return Answer(
            text=text,
            source=self.source,
            bridge=self.route[0].target if len(self.route) > 1 else "",
            alternatives=tuple(alternatives),
            confidence=weighted(sentence for answer in found for sentence in answer.sentences),
        )


class Guess(Protocol):
    """mt.text.language.Detector."""

    def detect(self, text: str) -> list[tuple[str, float]]: ...


@dataclass(frozen=True)
class Preparer:
    """Prepares the texts of jobs. Takes time for long ones."""

    routes: Routes
    guess: Guess | None  # not needed where jobs name their source

    def prepare(self, job: Job) -> list[Prepared]:
        """Raises UnsupportedLanguage."""
        return [self._prepared(text, job) for text in job.texts]

    def detect(self, text: str) -> list[Detected]:
        """Every language, the likeliest first. A text without letters may be in any: their confidence is 0."""
        assert self.guess is not None
        if not any(map(str.isalpha, text)):
            languages = sorted(self.routes.languages, key=lambda code: (code != PIVOT, code))
            return [Detected(code, 0.0) for code in languages]
        return [Detected(code, confidence) for code, confidence in self.guess.detect(text[:LOOKED_AT])]

    def source_of(self, text: str, target: str) -> Detected:
        """The language to translate a text from; it may be the target itself. Raises UnsupportedLanguage.

        Of languages between which the text leaves a doubt, one that can be translated is taken.
        """
        found = self.detect(text)
        fitting = {target, *self.routes.sources(target)}
        chosen = next((each for each in found if each.language in fitting), None)
        if chosen is None or (chosen is not found[0] and found[0].confidence >= SURE):
            self.routes.of(found[0].language, target)
            raise AssertionError(f"{described(target)} has no sources")
        return chosen

    def _prepared(self, text: str, job: Job) -> Prepared:
        markup = _parsed(text, job)
        detected = None
        if job.source is None:
            read = text if markup is None else _read(markup.segments)
            detected = self.source_of(read, job.target)
        source = job.source or (detected.language if detected else "")
        route = self.routes.of(source, job.target)
        units: tuple[Unit, ...] = ()
        if route and markup is None:
            units = (Unit(text, linked=job.wants.alignment),)
        elif route and markup is not None:
            units = tuple(map(unit_of, markup.segments))
        return Prepared(text, source, detected, route, units, markup)


def unit_of(segment: Segment) -> Unit:
    """Only where there are marks to place, the alignment is asked for."""
    return Unit(segment.text, segment.kept, linked=bool(segment.marks) and not segment.ordered)


def _parsed(text: str, job: Job) -> Markup | None:
    match job.format:
        case Format.HTML:
            return parse_html(text, job.markup)
        case Format.XML:
            return parse_xml(text, job.markup)
        case Format.TEXT:
            return None


def _read(segments: Sequence[Segment]) -> str:
    """The beginning of what a person reads."""
    found: list[str] = []
    length = 0
    for segment in segments:
        found.append(segment.text)
        length += len(segment.text)
        if length >= LOOKED_AT:
            break
    return "\n".join(found)
