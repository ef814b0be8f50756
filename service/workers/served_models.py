"""Models that the fleet serves: their names and order of preference, and the models that replace another."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from mt.bundled import STARTER_MODEL
from mt.errors import ModelError, problems
from service.errors import UnknownModel, shorten
from service.workers.model_files import folder_name, model_name
from service.workers.pool import WorkerPool

MAX_LISTED = 20  # directions in an error message


def pools_named(name: str, pools: Sequence[WorkerPool]) -> Sequence[WorkerPool]:
    """Return the pool of the model `name`, or all pools if `name` is "". Raises: UnknownModel if there is none."""
    named = [pool for pool in pools if pool.name == name] if name else pools
    if name and not named:
        raise UnknownModel(unknown_model(name, (pool.name for pool in pools)))
    return named


def unknown_model(name: str, names: Iterable[str]) -> str:
    """Return the error message for the unknown model `name`. `names` are the names of the served models."""
    return f"model {shorten(name)} is not served; accepted: {', '.join(sorted(names))}"


def served_names(pools: Sequence[WorkerPool]) -> dict[WorkerPool, str]:
    """Return the name of the model of each pool. Models with equal names are named after their folders.

    Raises: ModelError if two models still have the same name.
    """
    written = {pool: model_name(pool.model) for pool in pools}
    count = Counter(written.values())
    names = {pool: name if count[name] == 1 else folder_name(pool.model) for pool, name in written.items()}
    by_name: dict[str, list[str]] = {}
    for pool, name in names.items():
        by_name.setdefault(name, []).append(str(pool.model))
    wrong = [
        f"{' and '.join(same)} have the same name, {name}; set `name` in a config.json"
        for name, same in by_name.items()
        if len(same) > 1
    ]
    if wrong:
        raise ModelError(problems("the models cannot be served together", wrong))
    return names


def preferred_first(names: Mapping[WorkerPool, str], preferred: Sequence[str]) -> list[WorkerPool]:
    """Return the pools with these names, beginning with those named in `preferred`; the others keep their order.

    Raises: ModelError if a name in `preferred` is not the name of a model.
    """
    ranks = {name: rank for rank, name in enumerate(dict.fromkeys(preferred))}
    served = names.values()
    wrong = [f"preferred_models: {unknown_model(name, served)}" for name in ranks if name not in served]
    if wrong:
        raise ModelError(problems("the models cannot be served together", wrong))
    return sorted(names, key=lambda pool: ranks.get(names[pool], len(ranks)))


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
