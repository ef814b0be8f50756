"""Restoration of no-break spaces and line breaks in the translation of a sentence."""

from collections.abc import Sequence
from dataclasses import replace

from mt.pipeline.results import Alternative
from mt.pipeline.variants import SentenceContext, link_texts
from mt.text import typography
from mt.text.normalise import NormalisedText


async def restore_typography(
    sentence: str,
    normalised: NormalisedText,
    alternatives: tuple[Alternative, ...],
    context: SentenceContext,
    no_break_spaces: bool,
) -> tuple[Alternative, ...]:
    """Restore what a model cannot write. `normalised` is the text of `sentence` that the model read.

    An untranslated sentence becomes the original one. Line breaks, tabs and runs of spaces inside the sentence are
    inserted between the same words of the translations. `no_break_spaces` tells whether these get no-break spaces.
    """
    if len(alternatives[0].pieces) < 2 and alternatives[0].text == normalised.text:  # untranslated, or a code
        return (replace(alternatives[0], text=sentence), *alternatives[1:])
    texts = [alternative.text for alternative in alternatives]
    breaks = [
        (normalised.normalised_range(*match.span())[0], match[0])
        for match in typography.BREAKS.finditer(sentence)
        if normalised.text[slice(*normalised.normalised_range(*match.span()))] == " "
    ]
    if breaks:
        texts = await _with_breaks(normalised.text, texts, breaks, context)
    if "…" in sentence and "..." not in sentence:
        texts = [text.replace("...", "…") for text in texts]
    if '""' in sentence and '""' not in normalised.text:  # a field of a record, in which marks are doubled
        texts = [text.replace('"', '""') for text in texts]
    if no_break_spaces:
        texts = [typography.restore_no_break_spaces(sentence, text, context.target) for text in texts]
    return tuple(replace(one, text=text) for one, text in zip(alternatives, texts, strict=True))


async def _with_breaks(
    source: str, texts: Sequence[str], breaks: Sequence[tuple[int, str]], context: SentenceContext
) -> list[str]:
    """Insert line breaks (place in `source`, text) in the translations `texts`.

    A break at the end of a sentence of the source goes to the end of the same sentence of the translation. The places
    of other breaks come from the attention or, if a text is too long for it, from the lengths of the texts.
    """
    places = [place for place, _ in breaks]
    ends = [typography.places_of_sentence_ends(source, text, places) for text in texts]
    if None in ends:
        links = await link_texts([(source, text) for text in texts], context)
        for number, text in enumerate(texts):
            if ends[number] is None and links:
                units = links[number]
                gaps = [units.gap(place) for place in places]
                ends[number] = [units.right[gap - 1][1] if gap else 0 for gap in gaps]
            elif ends[number] is None:
                ends[number] = [max(0, text.find(" ", place * len(text) // len(source))) for place in places]
    return [
        typography.insert_breaks(text, list(zip(targets or [], (text for _, text in breaks), strict=False)))
        for text, targets in zip(texts, ends, strict=True)
    ]
