"""Values of the attacks of both reviews: `python -m scripts.attack.measure [--source FOLDER] [ROW ...]`.

FOLDER is a checkout of the version to attack. Each attack gets a service process of its own; its value is printed.
"""

import argparse
import os
import resource
import socket
import sqlite3
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

from tests.attacks.payloads import SIZED_DOCUMENTS
from tests.attacks.target import (
    BYSTANDER,
    ROOT,
    Impact,
    Response,
    Target,
    form,
    glossary,
    leave_answers_unread,
    measure,
    open_socket,
    running,
    send_unfinished_body,
    sentence,
    together,
)

Start = Callable[..., AbstractContextManager[Target]]
SECONDS = 20.0  # that an attacking request may take
MULTIPART = "multipart/form-data; boundary=b; charset=punycode"
FORM = "application/x-www-form-urlencoded"


def impact(attack: Callable[[Target], None], start: Start) -> str:
    """Return the effect of an attack on others."""
    with start(MT_CACHE_CHARACTERS="0") as target:
        return describe(measure(target, partial(attack, target)))


def describe(impact: Impact) -> str:
    return (
        f"/livez {1000 * impact.livez:.0f} ms, sentence {1000 * impact.meanwhile:.0f} ms "
        f"(alone {1000 * impact.alone:.0f}), failures {len(impact.failures)}"
    )


def many_terms(target: Target) -> None:
    terms = {f"a {number}": "b" for number in range(1000)}
    target.translate("a " * 5000, glossary=terms, timeout=SECONDS)


def punycode_form(target: Target) -> None:
    body = b'--b\r\nContent-Disposition: form-data; name="q-"\r\n\r\n' + b"a" * 200_000 + b"-" + b"a" * 199_000
    target.request("POST", "/translate", body + b"\r\n--b--\r\n", {"Content-Type": MULTIPART}, timeout=SECONDS)


def many_fields(target: Target) -> None:
    query = "&".join(f"a{number}=" for number in range(7000))
    for _ in range(3):
        target.request("POST", f"/translate?{query}", timeout=SECONDS)


def upload(kind: str, size: int, target: Target) -> Response:
    name, content = SIZED_DOCUMENTS[kind]
    return target.upload(name, content(size), timeout=SECONDS)


def freezing_files(target: Target) -> None:
    for kind, size in (("xliff-target-spaces", 200_000), ("md-footnotes", 60_000), ("po-charset", 60_000)):
        upload(kind, size, target)


def next_document(start: Start) -> str:
    with start() as target:
        slow = [partial(upload, kind, 400_000, target) for kind in ("docx-nested", "srt-newlines")]
        threads = [threading.Thread(target=call, daemon=True) for call in slow]
        for thread in threads:
            thread.start()
        time.sleep(1)
        answer = target.upload("b.txt", b"Where is the station?", caller=BYSTANDER, timeout=60)
        return f"status {answer.status} after {answer.seconds:.1f} s"


def sigterm(start: Start) -> str:
    with start() as target:
        threading.Thread(target=upload, args=("docx-nested", 1_000_000, target), daemon=True).start()
        time.sleep(2)
        begin = time.monotonic()
        try:
            return f"status {target.stop(75)} after {time.monotonic() - begin:.0f} s"
        except subprocess.TimeoutExpired:
            return "still running after 75 s"


def peak(target: Target, attack: Callable[[], object]) -> int:
    """Return by how many bytes the memory exceeds the memory before, at most, during an attack."""
    before, largest, stop = target.memory(), 0, threading.Event()

    def run() -> None:
        attack()
        stop.set()

    threading.Thread(target=run, daemon=True).start()
    while not stop.wait(0.05):
        largest = max(largest, target.memory() - before)
    return largest


def many_segments(start: Start) -> str:
    with start() as target:
        answers: list[Response] = []
        added = peak(target, lambda: answers.append(target.upload("a.txt", b"a\n" * 4_500_000, timeout=60)))
        return f"status {answers[0].status}, memory +{added / 1e6:.0f} MB"


def attention(start: Start) -> str:
    with start(MT_CACHE_CHARACTERS="0") as target:
        texts = [" ".join(["house"] * 150 + [str(number)]) for number in range(60)]
        answers: list[Response] = []
        added = peak(target, lambda: answers.append(target.translate(texts, attention=True, timeout=120)))
        return f"status {answers[0].status}, {len(answers[0].body) / 1e6:.1f} MB sent, memory +{added / 1e6:.0f} MB"


def many_errors(start: Start) -> str:
    with start() as target:
        answers: list[Response] = []
        content = {"dictionaries": [0] * 300_000, "name": "a"}
        added = peak(target, lambda: answers.append(target.post_json("/v3/glossaries", content)))
        return f"{len(answers[0].body):,} bytes sent in {answers[0].seconds:.1f} s, memory +{added / 1e6:.0f} MB"


def many_glossaries(start: Start) -> str:
    with start() as target:
        answers = [target.post_json("/v2/glossaries", glossary(9000)).status for _ in range(100)]
        return f"{answers.count(201)} of 100 glossaries of 0.2 MB accepted"


def unread_answers(start: Start) -> str:
    with start() as target:
        held: list[socket.socket] = []
        impact = measure(target, lambda: leave_answers_unread(target, held))
        descriptors = [os.path.realpath(path) for path in Path(f"/proc/{target.process.pid}/fd").iterdir()]
        left = sum("socket:" in path for path in descriptors)
        return f"{left} sockets open after 15 s; {describe(impact)}"


def one_letter_texts(target: Target) -> None:
    target.translate(["a"] * 1999, source="auto", timeout=SECONDS)


def locked_database(start: Start) -> str:
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "keys.sqlite"
        with start(MT_DATABASE=str(database)) as target:
            made = target.post_json("/v2/glossaries", glossary()).json["glossary_id"]
            lock = sqlite3.connect(database, isolation_level=None)
            lock.execute("BEGIN IMMEDIATE")
            answers: list[Response] = []
            together(*[lambda: answers.append(target.post_json("/v2/glossaries", glossary())) for _ in range(3)])
            read = target.request("GET", f"/v2/glossaries/{made}")
            seconds = ", ".join(f"{answer.seconds:.1f}" for answer in answers)
            return f"writes {[answer.status for answer in answers]} after {seconds} s; a read {read.status}"


def full_disk(start: Start) -> str:
    with tempfile.TemporaryDirectory() as folder, start(MT_DATABASE=f"{folder}/keys.sqlite") as target:
        largest = max(path.stat().st_size for path in Path(folder).iterdir())
        resource.prlimit(target.process.pid, resource.RLIMIT_FSIZE, (largest, resource.RLIM_INFINITY))
        document = target.send_file("/v2/document", "a.txt", b"A dog. " * 14_000)
        written = target.post_json("/v2/glossaries", glossary(5000))
        return f"/v2/document {document.status}, /v2/glossaries {written.status}"


def unfinished_bodies(start: Start) -> str:
    with start() as target:
        addresses = ("127.0.0.20", "127.0.0.21") * 11
        held = [send_unfinished_body(target, address, 9_800_000) for address in addresses]
        time.sleep(2)
        answer = target.translate("Where is the station?", caller=BYSTANDER)
        return f"six words of a third address: status {answer.status}; {len(held)} connections"


def long_line(start: Start) -> str:
    with start(MT_CACHE_CHARACTERS="0") as target:
        refused: list[int] = []

        def attack() -> None:
            thread = threading.Thread(
                target=partial(target.upload, "a.txt", b"a" * 990_000, timeout=SECONDS), daemon=True
            )
            thread.start()
            while thread.is_alive():
                refused.append(target.request("GET", "/readyz", timeout=SECONDS).status)
                time.sleep(0.2)

        impact = measure(target, attack)
        return f"/readyz failed {sum(status != 200 for status in refused)} of {len(refused)}; {describe(impact)}"


def terms_of_each_request(start: Start) -> str:
    terms = {f"word{number}": f"Wort{number}" for number in range(1000)}
    with start(MT_CACHE_CHARACTERS="0") as target:
        for _ in range(2):  # at the first time, the glossary is sent
            begin = target.loop_seconds()
            target.translate([sentence(number) for number in range(300)], glossary=terms, timeout=120)
            spent = target.loop_seconds() - begin
        begin = target.loop_seconds()
        target.translate([sentence(number) for number in range(300)], timeout=120)
        plain = target.loop_seconds() - begin
        return f"event loop {1000 * spent:.0f} ms of processor time, without terms {1000 * plain:.0f}"


def shared_address(start: Start) -> str:
    with start() as target:
        target.post_json("/v2/glossaries", glossary())
        listed = len(target.request("GET", "/v2/glossaries").json["glossaries"])
        host = {"Host": "evil.example"}
        body, kind = form({"source": "en", "target": "de"}, "a.txt", b"A dog.")
        answer = target.request("POST", "/translate_file", body, host | kind)
        return f"{listed} foreign glossaries listed; Host in the answer: {b'evil' in answer.body} ({answer.status})"


def privacy(start: Start) -> str:
    with tempfile.TemporaryDirectory() as folder, start(MT_DATABASE=f"{folder}/keys.sqlite") as target:
        modes = {oct(path.stat().st_mode & 0o777) for path in Path(folder).iterdir()}
        limits = Path(f"/proc/{target.process.pid}/limits").read_text()
        cores = next(line.split()[4] for line in limits.splitlines() if line.startswith("Max core"))
        target.translate("The secret plan costs much money.")
        first = target.translate("The secret plan costs much money.", caller=BYSTANDER).seconds
        again = target.translate("The secret plan costs much money.", caller=BYSTANDER).seconds
        times = f"sentence of another caller {1000 * first:.0f} ms, own {1000 * again:.0f}"
        return f"modes {modes}, core size {cores}; {times}"


def admin_key(start: Start) -> str:
    with start(MT_ADMIN_KEY="k" * 40) as target:
        children = [pid for pid in target.processes() if pid != target.process.pid]
        told = sum(b"MT_ADMIN_KEY" in Path(f"/proc/{pid}/environ").read_bytes() for pid in children)
        return f"{told} of {len(children)} child processes have the admin key"


def single_flight(start: Start) -> str:
    with start() as target:
        texts = [sentence(number) for number in range(1500)]
        busy = threading.Thread(target=partial(target.translate, texts, timeout=120), daemon=True)
        begin = time.monotonic()
        busy.start()
        time.sleep(0.3)
        answer = target.translate(texts[-1], caller=BYSTANDER, timeout=120)
        busy.join()
        return f"its sentence alone: {answer.seconds:.2f} s; the other request: {time.monotonic() - begin:.1f} s"


def descriptors(start: Start) -> str:
    with start(descriptors=64) as target:
        held = [open_socket(target) for _ in range(150)]
        before = len(target.logs)
        slowest = max(target.request("GET", "/livez", caller=BYSTANDER, timeout=15).seconds for _ in range(5))
        time.sleep(3)
        return f"/livez {slowest:.2f} s, {len(target.logs) - before} log lines; {len(held)} connections"


def small_defects(start: Start) -> str:
    with start() as target:
        name = target.upload("a" * 5000 + ".txt", b"House")
        head = target.request("HEAD", "/languages").status
        empty = target.post_json("/v2/translate", {"text": [], "target_lang": "DE"}).body[:90].decode()
        broken = {"text": ["<a>b"], "target_lang": "DE", "source_lang": "EN", "tag_handling": "xml"}
        xml = target.post_json("/v2/translate", broken).status
        return f"long name {name.status} {name.body[:60]!r}, HEAD {head}, broken XML {xml}, empty list {empty}"


def six_html_texts(target: Target) -> None:
    for text in ("<b>" * 512 + "x", "<p>" * 32_000):
        target.translate([text] * 6, format="html", timeout=SECONDS)


def vanished_text(start: Start) -> str:
    with start() as target:
        texts = ["today", "We\n\ntoday\n\nhouse", "we", "I", "so", "Yes.", "No", "the", "house", "today."]
        answer = target.translate(texts).json["translatedText"]
        return f"{sum(not text for text in answer)} of {len(texts)} empty; {answer[1]!r}"


def busy_caller(target: Target) -> None:
    texts = [sentence(number) for number in range(200)]
    call = partial(target.translate, texts, beam_size=10, alternatives=10, timeout=60)
    together(*[call] * 4)


ROWS: dict[str, Callable[[Start], str]] = {
    "SECURITY 1, ATTACKS 3": partial(impact, many_terms),
    "SECURITY 2, ATTACKS 2": partial(impact, punycode_form),
    "SECURITY 3, ATTACKS 2": partial(impact, many_fields),
    "SECURITY 4, ATTACKS 1": partial(impact, freezing_files),
    "SECURITY 5, ATTACKS 4": next_document,
    "SECURITY 6": many_segments,
    "SECURITY 7": attention,
    "SECURITY 8, ATTACKS 6": many_errors,
    "SECURITY 9": many_glossaries,
    "SECURITY 10, ATTACKS 9": unread_answers,
    "SECURITY 11": partial(impact, one_letter_texts),
    "SECURITY 12, ATTACKS 11": locked_database,
    "SECURITY 13, ATTACKS 8": unfinished_bodies,
    "SECURITY 14": long_line,
    "SECURITY 15": terms_of_each_request,
    "SECURITY 16": shared_address,
    "SECURITY 17": privacy,
    "SECURITY 20": single_flight,
    "SECURITY 24": admin_key,
    "ATTACKS 5": sigterm,
    "ATTACKS 7": vanished_text,
    "ATTACKS 10": partial(impact, busy_caller),
    "ATTACKS 12, SECURITY 19": full_disk,
    "ATTACKS 13": descriptors,
    "ATTACKS 15": small_defects,
    "ATTACKS 15, markup": partial(impact, six_html_texts),
}


def values(source: Path, rows: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the name and the value of each row, or of the rows whose name contains one of `rows`."""
    for name, row in ROWS.items():
        if not rows or any(part in name for part in rows):
            try:
                yield name, row(partial(running, source=source))
            except Exception as error:  # the attacked version may do anything
                yield name, f"{type(error).__name__}: {error}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=Path, default=ROOT, help="checkout of the version to attack")
    parser.add_argument("rows", nargs="*", help="part of the name of a row, such as 'SECURITY 1,'")
    options = parser.parse_args()
    for name, value in values(options.source, options.rows):
        print(f"{name} | {value}", flush=True)


if __name__ == "__main__":
    main()
