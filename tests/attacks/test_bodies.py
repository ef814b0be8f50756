"""Request bodies that stop the event loop or fill the memory (SECURITY 2, 3, 7, 8, 11; ATTACKS 2, 6, 15)."""

from collections.abc import Iterator

import pytest

from tests.attacks.target import Impact, Target, measure, running

pytestmark = pytest.mark.attack
MULTIPART = "multipart/form-data; boundary=b"


@pytest.fixture(scope="module")
def target() -> Iterator[Target]:
    with running(MT_CACHE_CHARACTERS="0") as found:
        yield found


def check(impact: Impact) -> None:
    print(impact)
    assert impact.problems() == []


@pytest.mark.parametrize("charset", ["punycode", "utf-7", "idna", "unicode_escape", "rot13"])
def test_form_charsets_other_than_utf8_are_refused(target: Target, charset: str) -> None:
    head = b'--b\r\nContent-Disposition: form-data; name="q-"\r\n\r\n'  # in Punycode, too, a name
    body = head + b"a" * 200_000 + b"-" + b"a" * 199_000 + b"\r\n--b--\r\n"
    statuses = []

    def attack() -> None:
        for content_type in (
            f"{MULTIPART}; charset={charset}",
            f"application/x-www-form-urlencoded; charset={charset}",
        ):
            statuses.append(target.request("POST", "/translate", body, {"Content-Type": content_type}).status)

    check(measure(target, attack))
    assert statuses == [400, 400]


def test_many_fields_are_refused(target: Target) -> None:
    query = "&".join(f"a{number}=" for number in range(7000))
    statuses = []

    def attack() -> None:
        statuses.append(target.request("POST", f"/translate?{query}").status)
        statuses.append(
            target.request(
                "POST", "/translate", query.encode(), {"Content-Type": "application/x-www-form-urlencoded"}
            ).status
        )

    check(measure(target, attack))
    assert statuses == [400, 400]


@pytest.mark.parametrize(
    ("path", "field"), [("/v3/glossaries", "dictionaries"), ("/v2/translate", "text"), ("/translate", "q")]
)
def test_errors_stay_small(target: Target, path: str, field: str) -> None:
    """The first 20 problems, at most 16 KB, whatever the number of wrong values."""
    before = target.memory()
    content = {field: [0] * 40_000, "name": "a", "target_lang": "DE", "source": "en", "target": "de"}
    answers = []
    check(measure(target, lambda: answers.append(target.post_json(path, content))))
    assert answers[0].status == 400 and len(answers[0].body) <= 16_384
    assert target.memory() - before < 40_000_000


def test_texts_beyond_the_limit_are_refused(target: Target) -> None:
    answers = []
    check(measure(target, lambda: answers.append(target.translate(["a"] * 1999, source="auto"))))
    assert answers[0].status in (400, 413)


def test_attention_has_one_budget_per_request(target: Target) -> None:
    before = target.memory()
    texts = [" ".join(["house"] * 150 + [str(number)]) for number in range(60)]
    answers = []
    check(measure(target, lambda: answers.append(target.translate(texts, attention=True))))
    assert answers[0].status in (200, 400, 413)
    assert len(answers[0].body) < 30_000_000
    assert target.memory() - before < 200_000_000
