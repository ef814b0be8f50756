"""Translation with a requested formality, such as the German "du" or "Sie"."""

from collections.abc import Awaitable, Callable
from dataclasses import replace

from mt.pipeline.results import Alternative
from mt.pipeline.variants import SentenceContext
from mt.text.formality import banned_words, formalities_of, supports_formality

BEAMS = 8  # at least, in the second search; with 16, hardly more sentences get the requested formality
TranslateSentence = Callable[[SentenceContext], Awaitable[tuple[Alternative, ...]]]  # returns the n-best list


async def translate_with_formality(
    sentence: str, context: SentenceContext, translate: TranslateSentence
) -> tuple[Alternative, ...]:
    """Return the n-best list of a sentence, with the formality of `context` if the model can produce it.

    If the best translation has a word of the opposite formality, a second search bans such words. Its n-best list
    begins with the translations of the requested formality, followed by those without any formality. If all its
    translations have a word of the opposite formality, the n-best list of the first search is returned.
    """
    alternatives = await translate(context)
    wanted, options = context.formality, context.options
    if wanted is None or options.sample or not supports_formality(context.target):
        return alternatives

    def rank(alternative: Alternative) -> tuple[bool, bool]:
        formalities = formalities_of(alternative.text, context.target, sentence, context.source)
        return wanted.opposite in formalities, wanted not in formalities

    if not rank(alternatives[0])[0]:
        return alternatives
    beams = max(BEAMS, options.beam_size)
    banning = replace(
        context,
        banned=(*context.banned, *banned_words(context.target, wanted)),
        options=replace(options, beam_size=beams, n_best=max(BEAMS, options.n_best)),
    )
    again = await translate(banning)
    again = tuple(sorted(again, key=rank))
    return alternatives if rank(again[0])[0] else again[: options.n_best]
