"""Which texts are suspected of the crash of a worker, and which are blocked."""

from mt.languages import Direction
from service.workers.messages import SourceText, Translate, TranslateOptions
from service.workers.quarantine import MAX_CRASHES, Quarantine

OPTIONS = TranslateOptions(Direction("en", "de"))
FIRST, SECOND = (Translate(number, SourceText(text), OPTIONS) for number, text in enumerate("ab"))


def test_a_text_is_blocked_after_it_alone_has_crashed_two_workers() -> None:
    quarantine = Quarantine()
    quarantine.record_crash([FIRST, SECOND], isolated=False)
    assert (quarantine.suspects(FIRST), quarantine.blocks(FIRST), len(quarantine)) == (True, False, 2)
    for crash in range(1, MAX_CRASHES + 1):
        quarantine.record_crash([FIRST], isolated=True)
        assert quarantine.blocks(FIRST) == (crash == MAX_CRASHES)
    assert quarantine.suspects(SECOND) and not quarantine.blocks(SECOND)
    quarantine.clear(SECOND)
    assert not quarantine.suspects(SECOND)
