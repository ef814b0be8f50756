"""State of a request from its acceptance to its answer."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import count

from mt.pipeline.results import SentenceReport, Translation
from service.workers.messages import SourceText, Translate, TranslateOptions

OnSentence = Callable[[SentenceReport], None]


@dataclass(eq=False)
class PendingRequest:
    """An accepted request. One version of a model translates all its texts, or the request fails."""

    texts: tuple[SourceText, ...]
    options: TranslateOptions
    caller: str
    deadline: float  # by time.monotonic()
    result: "asyncio.Future[list[Translation]]"
    on_sentence: OnSentence | None = None  # called with each finished sentence, in order; for requests of one text
    started: float | None = None  # time.monotonic() when a worker was given the first text
    unfinished: dict[int, Translate] = field(default_factory=dict)  # by message id
    withdraw: Callable[[], None] = field(default=lambda: None)  # call this once nobody waits for the result
    _translations: dict[int, Translation | None] = field(default_factory=dict)  # by message id, in order of the texts
    _reported: int = 0  # end of the last reported sentence in the source text

    def begin(self, ids: "count[int]", withdraw: Callable[[], None]) -> None:
        """Create a Translate message for each text, with new ids. A pool that takes over the request calls this again.

        `withdraw` tells the pool that nobody waits for the result any longer.
        """
        self.withdraw = withdraw
        self.unfinished = {
            (id := next(ids)): Translate(
                id, text, self.options, self.caller, self.deadline, self.on_sentence is not None
            )
            for text in self.texts
        }
        self._translations = dict.fromkeys(self.unfinished)

    def report(self, sentences: Iterable[SentenceReport]) -> None:
        """Call `on_sentence` for the finished sentences that have not been reported before.

        After a worker has died, another worker translates its text from the beginning, and reports the first sentences
        again.
        """
        for sentence in sentences:
            if self.on_sentence and sentence.source_range[1] > self._reported:
                self._reported = sentence.source_range[1]
                self.on_sentence(sentence)

    def finish(self, id: int, translation: Translation) -> None:
        """Store the translation of the text with the message id `id`. Set `result` once all texts are translated."""
        del self.unfinished[id]
        self._translations[id] = translation
        if not self.unfinished and not self.result.done():
            self.result.set_result(
                [translation for translation in self._translations.values() if translation is not None]
            )

    def fail(self, error: Exception) -> None:
        """End the request with an error. Do nothing if the request has already ended."""
        if not self.result.done():
            self.result.set_exception(error)
