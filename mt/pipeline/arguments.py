"""Arguments of `Translator.translate`, `translate_many` and `stream`, checked."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from mt.decoding.options import SearchOptions
from mt.errors import RequestError, problems
from mt.text.terms import Terms

MOST_PROBLEMS = 20  # of a list of texts


@dataclass(frozen=True)
class TextArguments:
    """The keyword arguments of `Translator.translate`.

    Raises:
        RequestError: An argument has the wrong type. The message lists all of them.
    """

    source: str | None
    target: str | None
    beam_size: int | None
    n_best: int | None
    glossary: Mapping[str, str] | None
    do_not_translate: Iterable[str]
    alignment: bool
    sentences: bool
    options: SearchOptions | None

    def __post_init__(self) -> None:
        if wrong := list(self._problems()):
            raise RequestError(problems("the arguments cannot be used", wrong))

    def search(self, default: SearchOptions) -> SearchOptions:
        """Return `options`, by default `default`, with the given `beam_size` and `n_best`.

        The beam is at least as wide as `n_best`, unless `beam_size` is given. Raises: RequestError if a value is not
        accepted.
        """
        options = self.options or default
        n_best = options.n_best if self.n_best is None else self.n_best
        wide = options.beam_size if options.sample else max(options.beam_size, n_best)
        return replace(options, n_best=n_best, beam_size=wide if self.beam_size is None else self.beam_size)

    def terms(self) -> Terms:
        """Return the glossary and the terms that are copied. Raises: RequestError if a term cannot be used."""
        return Terms(tuple((self.glossary or {}).items()), tuple(self.do_not_translate))

    def _problems(self) -> Iterator[str]:
        for name in ("source", "target"):
            if not isinstance(value := getattr(self, name), str | None):
                yield f"{name} is {shown(value)}; accepted: a language tag such as 'de', or None"
        for name in ("beam_size", "n_best"):
            if not isinstance(value := getattr(self, name), int | None) or isinstance(value, bool):
                yield f"{name} is {shown(value)}; accepted: a whole number of at least 1, or None"
        if not isinstance(self.options, SearchOptions | None):
            yield f"options is {shown(self.options)}; accepted: SearchOptions, or None"
        if not isinstance(self.glossary, Mapping | None):
            yield f"glossary is {shown(self.glossary)}; accepted: a mapping from terms to translations, or None"
        for term, translation in self.glossary.items() if isinstance(self.glossary, Mapping) else ():
            if not isinstance(term, str) or not isinstance(translation, str):
                yield f"glossary has {shown(term)}: {shown(translation)}; accepted: two values of type str"
        terms = self.do_not_translate
        if isinstance(terms, str) or not isinstance(terms, Iterable):
            yield f"do_not_translate is {shown(terms)}; accepted: a list of str"
        for term in terms if isinstance(terms, Collection) and not isinstance(terms, str) else ():
            if not isinstance(term, str):
                yield f"do_not_translate has {shown(term)}; accepted: a str"


def check_text(text: object) -> None:
    """Raise RequestError if `text` is not a str."""
    if not isinstance(text, str):
        raise RequestError(f"text is {shown(text)}; accepted: a str; translate_many takes several texts")


def check_texts(texts: object) -> None:
    """Raise RequestError if `texts` is not an iterable of texts, or if it is a list with other values than str."""
    if isinstance(texts, str) or not isinstance(texts, Iterable):
        raise RequestError(f"texts is {shown(texts)}; accepted: a list of str; translate takes one text")
    if not isinstance(texts, list | tuple):
        return
    wrong = [f"texts[{n}] is {shown(text)}" for n, text in enumerate(texts) if not isinstance(text, str)]
    if wrong:
        raise RequestError(problems("texts of another type than str", wrong[:MOST_PROBLEMS]))


def shown(value: Any) -> str:
    """Return a value for a message, shortened."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."
