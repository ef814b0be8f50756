"""Models that the fleet serves: their order of preference, and the model that replaces another."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from mt.bundled import STARTER_MODEL
from mt.errors import ModelError, problems
from mt.languages import DirectionSet
from service.errors import shorten
from service.workers.model_files import CardFacts, folder_name, model_name
from service.workers.pool import WorkerPool

MAX_LISTED = 20  # directions in an error message


@dataclass(frozen=True)
class ServedModel:
    """A model that the fleet serves."""

    name: str
    version: str
    directions: DirectionSet
    directory: Path = Path()
    about: str = ""  # what the model was trained on
    card: CardFacts = field(default_factory=CardFacts)
    size: int = 0  # bytes of the weights on disk

    @classmethod
    def of(cls, pool: WorkerPool) -> Self:
        """Describe the model of a pool, which must have been opened."""
        ready = pool.description
        return cls(pool.name, ready.version, ready.directions, pool.model, ready.about, pool.card, pool.size)


def unknown_model(name: str, names: Iterable[str]) -> str:
    """Return the error message for the unknown model `name`. `names` are the names of the served models."""
    return f"model {shorten(name)} is not served; accepted: {', '.join(sorted(names))}"


def assign_names(pools: Sequence[WorkerPool]) -> None:
    """Set `name` of each pool. Models with equal names are named after their folders.

    Raises: ModelError if two models still have the same name.
    """
    names = Counter(model_name(pool.model) for pool in pools)
    for pool in pools:
        name = model_name(pool.model)
        pool.name = name if names[name] == 1 else folder_name(pool.model)
    by_name: dict[str, list[WorkerPool]] = {}
    for pool in pools:
        by_name.setdefault(pool.name, []).append(pool)
    wrong = [
        f"{' and '.join(str(pool.model) for pool in same)} have the same name, {name}; set `name` in a config.json"
        for name, same in by_name.items()
        if len(same) > 1
    ]
    if wrong:
        raise ModelError(problems("the models cannot be served together", wrong))


def preferred_first(pools: Sequence[WorkerPool], preferred: Sequence[str]) -> list[WorkerPool]:
    """Return the pools, beginning with those named in `preferred`; the others follow in the given order.

    Raises: ModelError if a name in `preferred` is not the name of a model.
    """
    names = [pool.name for pool in pools]
    ranks = {name: rank for rank, name in enumerate(dict.fromkeys(preferred))}
    wrong = [f"preferred_models: {unknown_model(name, names)}" for name in ranks if name not in names]
    if wrong:
        raise ModelError(problems("the models cannot be served together", wrong))
    return sorted(pools, key=lambda pool: ranks.get(pool.name, len(ranks)))


def successors_of(old: WorkerPool, pools: Sequence[WorkerPool]) -> Sequence[WorkerPool]:
    """Return those of `pools` that replace `old`: together, they must translate every direction of `old`.

    These are the pool with the same model directory, or all pools if no pool has the same directory. The starter model,
    which only stood in for the models of an empty folder, is replaced by any models.

    Raises: ModelError if they do not translate a direction of `old`.
    """
    same = [pool for pool in pools if pool.model == old.model]
    successors = same or pools
    lost = [
        direction
        for direction in old.description.directions
        if not any(direction in pool.description.directions for pool in successors)
    ]
    if not lost or (old.model == STARTER_MODEL and not same):
        return successors
    listed = ", ".join(map(str, sorted(lost)[:MAX_LISTED]))
    raise ModelError(
        f"{old.model}: the new version does not translate {listed}; accepted: every direction of the old version"
        if same
        else f"{old.model} was removed, but no other model translates {listed}; accepted: other models that translate "
        "all directions of the removed model"
    )
