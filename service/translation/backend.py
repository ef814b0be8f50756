"""Interface of the models to the translation service."""

from collections.abc import Sequence
from typing import Protocol

from mt.languages import Direction
from mt.pipeline.results import Translation
from service.workers.messages import SourceText, TranslateOptions
from service.workers.pending import OnSentence
from service.workers.served_models import ServedModel


class TranslationBackend(Protocol):
    """The part of service.workers.fleet.Fleet that the translation service uses."""

    @property
    def models(self) -> tuple[ServedModel, ...]:
        """The models that are served now."""

    def model_for(self, direction: Direction, name: str = "") -> ServedModel:
        """Return the model of this name, or else the default model of `direction`."""

    def check_room(self, caller: str, texts: Sequence[str]) -> None:
        """Raise Overloaded if the queue is too full for these texts."""

    async def translate(
        self,
        texts: Sequence[SourceText],
        options: TranslateOptions,
        *,
        caller: str = "",
        deadline: float | None = None,
        on_sentence: OnSentence | None = None,
    ) -> list[Translation]:
        """Return the translations of `texts`, in order, all by the same version of a model."""
