"""What is accepted and not yet answered, as the event loop sees it."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Protocol

from mt.engine.results import Translation
from service.workers.messages import Order, Text, Translate

CHARACTERS = 80  # of a sentence, about


def cost(text: Text) -> int:
    """About as many sentences."""
    return 1 + len(text.text) // CHARACTERS


class Holder(Protocol):
    """Who works on a ticket."""

    def take_back(self, ticket: "Ticket") -> None:
        """Nobody waits for it any more."""


@dataclass(eq=False)
class Ticket:
    """A text of a call that is not done. It has a holder once a worker has been given it."""

    call: "Call"
    place: int
    holder: Holder | None = None
    id: int = 0

    @property
    def text(self) -> Text:
        return self.call.texts[self.place]

    @property
    def caller(self) -> str:
        return self.call.order.caller

    @property
    def cost(self) -> int:
        return cost(self.text)

    @property
    def key(self) -> bytes:
        """Equal for texts that do the same to a model, whoever sends them."""
        order = self.call.order
        asked = (self.text, order.direction, order.options, order.sentences, order.terms, order.insight)
        return blake2b(repr(asked).encode("utf-8", "surrogatepass"), digest_size=16).digest()

    def message(self) -> Translate:
        return Translate(self.id, self.text, self.call.order, self.call.deadline)


@dataclass(eq=False)
class Call:
    """The texts of one request. Either all are translated, by one version of the model, or it fails."""

    order: Order
    texts: tuple[Text, ...]
    deadline: float
    answer: "asyncio.Future[list[Translation]]"
    begun: float | None = None  # by time.monotonic(): when a worker was first given one of them
    left: dict[int, Ticket] = field(default_factory=dict)  # by place
    _found: dict[int, Translation] = field(default_factory=dict)
    _forget: Callable[["Call"], None] = field(init=False)

    def begin(self, forget: Callable[["Call"], None]) -> None:
        """From the start, again if need be. `forget` is to be called when nobody waits for it any more."""
        self._forget = forget
        self._found = {}
        self.left = {place: Ticket(self, place) for place in range(len(self.texts))}

    def take(self, ticket: Ticket, translation: Translation) -> None:
        """One text is done."""
        del self.left[ticket.place]
        self._found[ticket.place] = translation
        if not self.left and not self.answer.done():
            self.answer.set_result([self._found[place] for place in range(len(self.texts))])

    def end(self) -> None:
        """Nobody waits for it any more, or it is done."""
        self._forget(self)

    def fail(self, error: Exception) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)
