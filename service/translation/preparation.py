"""Preparation of the texts of a job: detection of their languages, and division into parts for the models."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from service.languages import TranslationRoute, TranslationRoutes, pivot_order
from service.translation.answers import untranslated_answer
from service.translation.jobs import Answer, DetectedSource, Job
from service.workers.messages import SourceText

DETECTED_PREFIX = 4000  # language detection reads only this many characters at the beginning of a text
IN_TARGET = 0.25  # prior weight of the target language: few texts that are sent for translation are in it already
SURE = 0.8  # from this confidence on, a text in an unsupported language stays unchanged; below it, a guess is used


@dataclass(frozen=True)
class PreparedText:
    """A text of a job, divided into parts for the models."""

    text: str
    source: str
    detected: DetectedSource | None
    route: TranslationRoute  # empty if the text stays unchanged
    parts: tuple[SourceText, ...]  # the segments of markup, or the whole plain text
    is_markup: bool = False
    served: bool = True  # whether the text is in the target language or in a language that is translated into it

    def answer(self, answers: Sequence[Answer], written: Sequence[str] = ()) -> Answer:
        """Return the answer for this text, given the answers for its parts.

        If the text has markup, `written` has the marked-up translations of the whole text, the best first.
        """
        if not self.served:
            parts = tuple(untranslated_answer(part.text, self.source) for part in self.parts)
            answer = Answer(self.text, self.source, segments=parts) if self.is_markup else parts[0]
            answer = replace(answer, served=False)
        elif not self.route:
            answer = Answer(self.text, self.source)
        elif not self.is_markup:
            answer = answers[0]
        else:
            answer = Answer(
                text=written[0],
                source=self.source,
                bridge=self.route[0].target if len(self.route) > 1 else "",
                models=tuple(dict.fromkeys(name for answer in answers for name in answer.models)),
                alternatives=tuple(written[1:]),
                segments=tuple(answers),
            )
        return replace(answer, detected=self.detected) if self.detected else answer


class SupportsDetect(Protocol):
    """Interface of a language detector, such as mt.text.language_detection.LanguageDetector."""

    def detect(self, text: str) -> list[tuple[str, float]]:
        """Return (language, confidence from 0 to 1) of each language, the likeliest language first.

        The first language may be one for which the detector was not created.
        """


def detect(text: str, routes: TranslationRoutes, detector: SupportsDetect) -> list[DetectedSource]:
    """Return every language with the confidence that `text` is in it, the likeliest language first.

    If the text is surely in a language that is not served, this language comes first. For a text without letters, every
    confidence is 0.
    """
    if not any(map(str.isalpha, text)):
        return [DetectedSource(code, 0.0) for code in sorted(routes.languages, key=pivot_order)]
    return [DetectedSource(*guess) for guess in detector.detect(text[:DETECTED_PREFIX])]


def detect_source(text: str, target: str, routes: TranslationRoutes, detector: SupportsDetect) -> DetectedSource:
    """Return the likeliest language of a text among `target` and the languages that can be translated into it.

    If the text is surely in none of them, return the likeliest of all languages.
    """
    guesses = detect(text, routes, detector)
    supported = {target, *routes.sources_of(target)}
    likeliest = guesses[0]
    if likeliest.confidence >= SURE or likeliest.language not in routes.languages:  # which the detector decided
        return likeliest
    possible = [guess for guess in guesses if guess.language in supported]
    weight = {target: IN_TARGET}
    return max(possible, key=lambda guess: guess.confidence * weight.get(guess.language, 1), default=likeliest)


def prepare_text(
    job: Job,
    number: int,
    segments: Sequence[SourceText] | None,
    routes: TranslationRoutes,
    detector: SupportsDetect | None,
) -> PreparedText:
    """Prepare text `number` of a job. `segments` are its segments if it has markup, otherwise None.

    `detector` is None if the job names its source language.

    Use a thread for long texts, because they take time.

    Raises: UnsupportedLanguage if no models translate from the source of the job to its target.
    """
    text, source, detected, served = job.texts[number], job.source, None, True
    if source is None:
        assert detector is not None
        beginning = text if segments is None else beginning_of(segment.text for segment in segments)
        detected = detect_source(beginning, job.target, routes, detector)
        source = detected.language
        served = source in {job.target, *routes.sources_of(job.target)}
    route = routes.find(source, job.target) if served else ()
    parts = (SourceText(text, aligned=job.alignment),) if segments is None else tuple(segments)
    return PreparedText(text, source, detected, route, parts, segments is not None, served)


def beginning_of(texts: Iterable[str]) -> str:
    """Join the first texts with line breaks: as many as are needed for DETECTED_PREFIX characters, or all."""
    lines: list[str] = []
    length = 0
    for text in texts:
        lines.append(text)
        length += len(text)
        if length >= DETECTED_PREFIX:
            break
    return "\n".join(lines)
