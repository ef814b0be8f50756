"""Arguments of `Translator.translate`, `translate_many` and `stream`, checked."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypedDict

from mt.decoding.options import SearchOptions
from mt.errors import LanguageError, RequestError, problems
from mt.text.formality import FORMALITY_CHOICES
from mt.text.terms import Terms

MOST_PROBLEMS = 20  # of a list of texts


class TextArguments(TypedDict, total=False):
    """Keyword arguments of `Translator.translate`, which describes them, and of `translate_many` and `stream`."""

    source: str | None
    target: str | None
    beam_size: int | None
    n_best: int | None
    glossary: Mapping[str, str] | None
    do_not_translate: Iterable[str]
    formality: str | None
    alignment: bool
    sentences: bool
    options: SearchOptions | None


def check_arguments(arguments: TextArguments, choose_direction: Callable[[str | None, str | None], object]) -> None:
    """Check the names and the types of keyword arguments. `choose_direction` raises LanguageError for wrong languages.

    Raises:
        TypeError: A name is not an argument.
        LanguageError: Only the languages are wrong.
        RequestError: Arguments have the wrong type or are too small. The message lists all of them.
    """
    names = TextArguments.__annotations__
    for name in arguments:
        if name not in names:
            raise TypeError(f"got an unexpected keyword argument {name!r}; accepted: {', '.join(names)}")
    wrong = list(_problems(arguments))
    source, target = arguments.get("source"), arguments.get("target")
    if isinstance(source, str | None) and isinstance(target, str | None):
        try:
            choose_direction(source, target)
        except LanguageError as error:
            if not wrong:
                raise
            wrong.append(str(error))
    if wrong:
        raise RequestError(problems("the arguments cannot be used", wrong))


def search_options(arguments: TextArguments, default: SearchOptions) -> SearchOptions:
    """Return the argument `options`, by default `default`, with the arguments `beam_size` and `n_best`.

    The beam is at least as wide as `n_best`, unless `beam_size` is given. Raises: RequestError for a wrong value.
    """
    options = arguments.get("options") or default
    beam_size, n_best = arguments.get("beam_size"), arguments.get("n_best")
    n_best = options.n_best if n_best is None else n_best
    if beam_size is None:
        beam_size = options.beam_size if options.sample else max(options.beam_size, n_best)
    if (n_best, beam_size) == (options.n_best, options.beam_size):
        return options
    return replace(options, n_best=n_best, beam_size=beam_size)


def terms_of(arguments: TextArguments) -> Terms:
    """Return the glossary and the terms that are copied. Raises: RequestError if a term cannot be used."""
    return Terms(tuple((arguments.get("glossary") or {}).items()), tuple(arguments.get("do_not_translate", ())))


def _problems(arguments: Mapping[str, Any]) -> Iterator[str]:
    """Yield a message for each argument of the wrong type."""
    for name in ("source", "target"):
        if not isinstance(value := arguments.get(name), str | None):
            yield f"{name} is {shown(value)}; accepted: a language tag such as 'de', or None"
    for name in ("beam_size", "n_best"):
        if not isinstance(value := arguments.get(name), int | None) or isinstance(value, bool):
            yield f"{name} is {shown(value)}; accepted: a whole number of at least 1, or None"
        elif value is not None and value < 1:
            yield f"{name} is {value}; accepted: at least 1"
    if (value := arguments.get("formality")) not in (None, *FORMALITY_CHOICES):
        yield f"formality is {shown(value)}; accepted: {', '.join(FORMALITY_CHOICES)}, or None"
    if not isinstance(value := arguments.get("options"), SearchOptions | None):
        yield f"options is {shown(value)}; accepted: SearchOptions, or None"
    if not isinstance(glossary := arguments.get("glossary"), Mapping | None):
        yield f"glossary is {shown(glossary)}; accepted: a mapping from terms to translations, or None"
    for term, translation in glossary.items() if isinstance(glossary, Mapping) else ():
        if not isinstance(term, str) or not isinstance(translation, str):
            yield f"glossary has {shown(term)}: {shown(translation)}; accepted: two values of type str"
    terms = arguments.get("do_not_translate", ())
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
