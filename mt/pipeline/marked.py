"""Translation of sentences that contain tags, in plain strings such as those of program resources."""

from collections.abc import Sequence
from dataclasses import replace

from mt.pipeline.explain import find_copies
from mt.pipeline.results import Alternative
from mt.pipeline.variants import SentenceContext, attend_texts
from mt.text.alignment import Link, link_words
from mt.text.markup.inline import InlineText
from mt.text.markup.marks import TranslatedSegment


async def place_tags(
    inline: InlineText[str], alternatives: Sequence[Alternative], context: SentenceContext
) -> tuple[Alternative, ...]:
    """Return the translations of the segment of a sentence with the tags of the sentence, which attention places."""
    assert inline.built is not None
    source = inline.built.segment.text
    links = await _links(source, [alternative.text for alternative in alternatives], context)
    before, _, after = ("".join(parts) for parts in inline.sources())
    placed = []
    for alternative, alignment in zip(alternatives, links, strict=True):
        translated = TranslatedSegment(alternative.text, tuple(alignment))
        rendered = "".join(inline.built.render(translated, lambda text: text))
        placed.append(replace(alternative, text=before + rendered + after))
    return tuple(placed)


async def _links(source: str, targets: Sequence[str], context: SentenceContext) -> list[list[Link]]:
    """Return the links between the words of a source and of each translation; none if a text is too long."""
    normalise = context.normaliser.normalise
    left, rights = normalise(source), [normalise(target) for target in targets]
    attentions = await attend_texts([(left.text, right.text) for right in rights], context)
    if attentions is None:
        return [[] for _ in targets]
    links = []
    for right, attention in zip(rights, attentions, strict=True):
        copies = [link for _, link in find_copies(left.text, right.text)]
        linked = link_words(left.text, right.text, attention, copies)
        links.append([(left.original_range(*a), right.original_range(*b)) for a, b in linked])
    return links
