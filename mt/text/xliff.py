"""The states of XLIFF 1.2 and 2, and whether the target of a unit in a state counts as its translation."""

UNTRANSLATED = frozenset({"new", "initial", "needs-translation", "needs-adaptation", "needs-l10n"})
"""Values of the attribute `state` for targets that are not translated: often a copy of the source, or an old text."""

TRANSLATED = frozenset({"translated", "reviewed", "signed-off", "final"})
"""Values of the attribute `state` for targets that somebody has translated, even if they equal the source."""


def is_translated(source: str, target: str, state: str | None, approved: str | None) -> bool:
    """Return whether a unit counts as translated. `source` and `target` are texts; "" means an empty or missing target.

    `state` and `approved` are the values of these attributes. A target that awaits a review (`needs-review-*`), or has
    no state, counts as a translation unless it equals the source.
    """
    if not target:
        return False
    if approved == "yes" or state in TRANSLATED:
        return True
    return state not in UNTRANSLATED and target != source
