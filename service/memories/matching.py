"""Search of a translation memory for the sentences of texts, before the texts go to the models."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from mt.languages import Direction
from mt.text import protect
from mt.text.fuzzy_match import MemoryMatch
from mt.text.markup.strings import split_marked_text
from service.languages import TranslationRoute
from service.translation.coroutines import WorkThreads
from service.translation.jobs import Job
from service.workers.messages import SourceText

FindMatches = Callable[[str, str, Direction, Sequence[str], float], Awaitable[Sequence[MemoryMatch]]]
"""Function (caller, id of a memory, direction, sentences, smallest score) that returns each sentence's best match."""


async def attach_matches(
    parts: Sequence[tuple[SourceText, TranslationRoute]], job: Job, find: FindMatches | None, threads: WorkThreads
) -> Sequence[tuple[SourceText, TranslationRoute]]:
    """Return `parts` with the matches that the job's translation memory, if any, has for the sentences of each text."""
    if not job.memory:
        return parts
    assert find is not None
    effort = sum(len(text.text) for text, _ in parts)
    sentences = await threads.run(
        job.caller, effort, lambda: [list(_sentences(text.text, route, job)) for text, route in parts]
    )
    strings: dict[Direction, dict[str, None]] = {}
    for (_, route), listed in zip(parts, sentences, strict=True):
        strings.setdefault(_ends(route), {}).update(dict.fromkeys(listed))
    matches = {
        direction: {
            match.sentence: match
            for match in await find(job.caller, job.memory, direction, list(listed), job.memory_score)
        }
        for direction, listed in strings.items()
    }

    def attached(text: SourceText, route: TranslationRoute, listed: Iterable[str]) -> SourceText:
        known = matches[_ends(route)]
        return replace(text, matches=tuple(known[string] for string in dict.fromkeys(listed) if string in known))

    return [(attached(text, route, listed), route) for (text, route), listed in zip(parts, sentences, strict=True)]


def _ends(route: TranslationRoute) -> Direction:
    return Direction(route[0].source, route[-1].target)


def _sentences(text: str, route: TranslationRoute, job: Job) -> Iterator[str]:
    """Yield the strings to look up: the whole text, each sentence, and each sentence without its list marker.

    A worker splits the text into the same strings (see TextPlanner), and uses the matches of these strings.
    """
    yield text.strip()
    if not job.split_sentences:
        return
    source = route[0].source
    for part in split_marked_text(text, source):
        if not part.kept:
            yield part.text
            if marker := protect.list_marker_length(part.text, source):
                yield part.text[marker:]
