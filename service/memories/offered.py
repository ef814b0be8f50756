"""The operator's memories that a setting names: the page uses the first that fits for every user."""

from collections.abc import Iterable, Sequence

from mt.errors import did_you_mean, problems
from service.memories.store import Memory
from service.settings import SettingsError


def named(names: Sequence[str], memories: Iterable[Memory]) -> list[Memory]:
    """Return the memories with these names, in the order of the names."""
    return sorted((memory for memory in memories if memory.name in names), key=lambda memory: names.index(memory.name))


def check_names(names: Sequence[str], known: Sequence[str]) -> None:
    """Raise SettingsError if names of the setting `page_memories` are not in `known`."""
    if unknown := [name for name in names if name not in known]:
        wrong = [f"the operator has no memory {name!r}{did_you_mean(name, known)}" for name in unknown]
        accepted = ", ".join(dict.fromkeys(known)) or "a memory that `mt-service memory import` has stored"
        raise SettingsError(problems(f"the setting page_memories cannot be used; accepted: {accepted}", wrong))
