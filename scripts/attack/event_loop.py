"""The longest callbacks of the event loop, whatever a client sends: requests at the limits of every route (rule 11).

`python -m scripts.attack.event_loop [CASE ...]` prints the callbacks of 5 ms of processor time or more.
"""

import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch
from urllib.parse import urlencode

from scripts.attack.loop_recorder import findings
from scripts.attack.target import Response, ServiceProcess, form, running, sentence

LONG = " ".join(f"The dog sees the cat and the man {number}." for number in range(2500))[:99_000]
TEXTS = [sentence(number) for number in range(1000)]
SHORT = [f"Go {number}! {'Go! ' * 22}" for number in range(990)]
XML = "<a>dog</a> " * 80
Attack = Callable[[ServiceProcess], object]


def put(
    target: ServiceProcess, method: str, path: str, name: str, content: bytes, fields: Mapping[str, str] | None = None
) -> Response:
    return target.send_file(path, name, content, fields or {}, method=method, timeout=120)


def memory(target: ServiceProcess) -> None:
    """Store 200,000 units, and read them in every way."""
    lines = "".join(f"The dog {number}\tDer Hund {number}\n" for number in range(200_000))
    stored = put(target, "PUT", "/memories", "a.tsv", lines.encode())
    assert stored.status == 200, stored.body
    id = stored.json["id"]
    target.request("GET", f"/memories/{id}/tmx", timeout=120)
    target.request("GET", f"/v3/translation_memories/{id}/segments?page_size=1000&filter_text={'a' * 1000}")
    target.request("GET", f"/v3/translation_memories/{id}/segments?page_size=1000")
    target.translate(TEXTS, {"memory": id}, timeout=120)


def long_memory(target: ServiceProcess) -> None:
    """Store 1,000 units of the greatest length, whose export is five times as long."""
    lines = "".join(f"{number}{'&' * 3990}\t{'&' * 3990}\n" for number in range(1000))
    id = put(target, "PUT", "/memories", "a.tsv", lines.encode()).json["id"]
    target.request("GET", f"/memories/{id}/tmx", timeout=120)
    target.request("GET", f"/v3/translation_memories/{id}/segments?page_size=1000&filter_text=%C3%9F")


def glossary(target: ServiceProcess) -> None:
    """Store glossaries with much text, many entries and many dictionaries, and use one."""
    entries = "\n".join(f"term {number}\tWort {number}" for number in range(9_990))
    fields = {"name": "a", "source_lang": "EN", "target_lang": "DE", "entries": entries, "entries_format": "tsv"}
    stored = target.post_json("/v2/glossaries", fields)
    assert stored.status == 201, stored.body
    id = stored.json["glossary_id"]
    target.request("GET", f"/v2/glossaries/{id}/entries")
    target.translate(TEXTS, {"glossary_id": id}, timeout=120)
    target.post_json(
        "/v2/translate", {"text": [LONG], "source_lang": "EN", "target_lang": "DE", "glossary_id": id}, timeout=120
    )
    one = {"source_lang": "EN", "target_lang": "DE", "entries": "a\tb", "entries_format": "tsv"}
    target.post_json("/v3/glossaries", {"name": "a", "dictionaries": [one] * 12_000})
    target.post_json(
        "/v3/glossaries", {"name": "a", "dictionaries": [one | {"target_lang": f"X{n}"} for n in range(12_000)]}
    )


def documents(target: ServiceProcess) -> None:
    """Translate long files by both contracts, and download them."""
    lines = "".join(f"{sentence(number)}\n" for number in range(9000)).encode()
    stored = put(target, "POST", "/translate_file", "a.txt", b"house\n" * 100_000, {"tmx": "true"})
    assert stored.status == 200, stored.body
    target.request("GET", "/" + stored.json["tmxUrl"].split("/", 3)[3], timeout=120)
    put(target, "POST", "/translate_file", "a.csv", b"house,dog\n" * 30_000, {"columns": "1", "tmx": "true"})
    for content in (b"house " * 1_600_000, b"a\n" * 400_000, lines):
        uploaded = put(target, "POST", "/v2/document", "a.txt", content)
        if uploaded.status == 200:
            key = {"document_key": uploaded.json["document_key"]}
            for _ in range(30):
                if (
                    target.post_json(f"/v2/document/{uploaded.json['document_id']}", key).json["status"]
                    != "translating"
                ):
                    break
            target.post_json(f"/v2/document/{uploaded.json['document_id']}/result", key)


def odd_bodies(target: ServiceProcess) -> None:
    """Send bodies of the greatest size with many small parts."""
    kind = {"Content-Type": "application/json"}
    for body in (
        b"[" * 900_000,
        b'{"a":' * 150_000,
        b'{"q": [' + b"1," * 450_000 + b"1]}",
        b'{"q": [' + b'"",' * 300_000 + b'""]}',
        b"{" + b",".join(b'"a%d":0' % number for number in range(90_000)) + b"}",
        b'{"q": "' + b"\\ud83d\\ude00" * 70_000 + b'", "source": "en", "target": "de"}',
        b'{"q": "' + b"\\ud83d" * 150_000 + b'", "source": "en", "target": "de"}',
    ):
        for path in ("/translate", "/v2/translate", "/v3/glossaries", "/detect"):
            target.request("POST", path, body, kind)
    urlencoded = {"Content-Type": "application/x-www-form-urlencoded"}
    for fields in ({"q": "%F0" * 80_000}, {f"a{number}": "é" * 100 for number in range(999)}):
        target.request("POST", "/translate", urlencode(fields).encode(), urlencoded)
    target.request("POST", "/translate", b"q=" + b"%41" * 300_000, urlencoded)
    target.request("POST", "/translate", b"&" * 900_000, urlencoded)
    many = {f"a{number}": "x" for number in range(990)}
    for fields in (many, {"q": LONG * 9}, {"q": "\r\n-" * 250_000}):
        body, headers = form({"source": "en", "target": "de", **fields})
        target.request("POST", "/translate", body, headers)
    for count in (1200, 100_000):
        body, headers = form({f"b{number}": "" for number in range(count)}, "a.txt", b"house")
        target.request("POST", "/translate_file", body[:9_900_000], headers)
    put(target, "POST", "/translate_file", "a.txt", b"\r\n--" * 2_400_000)


def deepl(target: ServiceProcess) -> None:
    """Send texts with markup, and long lists of tags."""
    common = {"source_lang": "EN", "target_lang": "DE"}
    for fields in (
        {"text": [XML] * 100, "tag_handling": "xml"},
        {"text": ["<a>" * 150] * 200, "tag_handling": "xml"},
        {"text": ["&amp;" * 18_000], "tag_handling": "xml"},
        {"text": ["<a b='" + "x" * 98_000 + "'/>"], "tag_handling": "xml"},
        {"text": ["<p>house</p>"] * 900, "tag_handling": "html", "outline_detection": False},
        {"text": ["house"], "tag_handling": "xml", "ignore_tags": [f"a{number}" for number in range(60_000)]},
        {"text": TEXTS, "show_untranslated": True, "show_billed_characters": True},
        {"text": ["a\n" * 45_000], "split_sentences": "nonewlines"},
        {"text": ["\n" * 90_000], "split_sentences": "nonewlines"},
    ):
        target.post_json("/v2/translate", common | fields, timeout=120)


ATTACKS: dict[str, Attack] = {
    "attention": lambda target: target.translate(
        [" ".join(["house"] * 150 + [str(n)]) for n in range(60)], {"attention": True}
    ),
    "attention of a long sentence": lambda target: target.translate(
        " ".join(["dog"] * 250), {"attention": True, "split_sentences": False}
    ),
    "alignment": lambda target: target.translate(
        LONG, {"alignment": True, "quality": True, "segments": True}, timeout=120
    ),
    "alternatives": lambda target: target.translate(
        LONG[:20_000], {"alternatives": 10, "segments": True, "alignment": True}, timeout=120
    ),
    "texts": lambda target: target.translate(TEXTS, {"quality": True, "untranslated": True}, timeout=120),
    "long answers": lambda target: [
        target.translate(texts, {"alternatives": 10, "alignment": True, "quality": True, **fields}, timeout=300)
        for texts in ("Go! " * 12_000, [f"{number} {'Go! ' * 22}" for number in range(1000)])
        for fields in ({}, {"stream": True})
    ],
    "short sentences": lambda target: target.translate(SHORT, {"segments": True}, timeout=120),
    "cached texts": lambda target: [target.translate(TEXTS, timeout=120) for _ in range(2)],
    "detection": lambda target: [
        target.translate(TEXTS, {"source": "auto"}, timeout=120),
        target.post_json("/detect", {"q": LONG}),
    ],
    "terms": lambda target: target.translate(
        TEXTS, {"glossary": {f"dog {n}": f"Hund {n}" for n in range(999)}}, timeout=120
    ),
    "untranslated terms": lambda target: target.translate(
        LONG, {"do_not_translate": [f"the {n}" for n in range(999)]}, timeout=120
    ),
    "html": lambda target: [
        target.translate(text, {"format": "html"}, timeout=120)
        for text in (
            "<b>" * 33_000,
            "<b>a</b>" * 12_000,
            "&amp;&#x41;" * 9_000,
            ["<b>a" * 40] * 500,
            ["<i>" * 60] * 500,
        )
    ],
    "stream": lambda target: [
        target.translate(text, {"stream": True}, timeout=120) for text in (LONG[:20_000], TEXTS[:200])
    ],
    "characters": lambda target: [
        target.translate(text, timeout=120)
        for text in (
            "a" + "\u0301" * 90_000,
            "\u202e\u200d" * 49_000 + "a",
            "1." * 49_000,
            "http://a.b/" * 9_000,
            "a\n" * 49_000,
        )
    ],
    "memory": memory,
    "long memory": long_memory,
    "glossary": glossary,
    "documents": documents,
    "odd bodies": odd_bodies,
    "deepl": deepl,
    "documentation": lambda target: [
        target.request("GET", path)
        for path in (
            "/docs",
            "/openapi.json",
            "/",
            "/web/modules/main.js",
            "/metrics",
            "/languages",
            "/v3/languages?resource=translate_text",
            "/v2/glossary-language-pairs",
        )
    ],
}


@contextmanager
def recorded() -> Iterator[tuple[ServiceProcess, Path]]:
    """Start a service whose event loop is recorded, and yield it with the file of the record."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "loop"
        with patch.dict(os.environ, RECORDED_LOOP=str(file)), running() as target:
            file.unlink(missing_ok=True)  # callbacks of the start
            yield target, file


def main(names: list[str]) -> None:
    for name, attack in ATTACKS.items():
        if not names or name in names:
            with recorded() as (target, file):
                attack(target)
                print(f"== {name}", flush=True)
                for milliseconds, count, stack in findings(file):
                    print(f"{milliseconds:7.1f} ms, {count:3d} times: {stack}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
