"""Contender: Translator.translate as a program of one's own would call it, and as the service's answers are made."""

from collections.abc import Sequence

from .harness import Search, attend
from .peer_ours import Ours


class Plain(Ours):
    """Texts are split into sentences, and come back whole; the search is the model's own."""

    def translate_text(self, lines: Sequence[str], search: Search) -> list[str]:
        return [found.text for found in self.translator.translate(lines)]


def main() -> None:
    attend(Plain)
