import gzip
import lzma
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mt.data.corpus import MAX_LINE_BYTES, MAX_PROBLEMS, read_content, read_lines, read_parallel, read_tsv
from mt.errors import DataError

PACKERS: dict[str, Callable[[bytes], bytes]] = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress}

every_kind = pytest.mark.parametrize("suffix", PACKERS)


def put(path: Path, content: bytes) -> Path:
    path.write_bytes(PACKERS.get(path.suffix, bytes)(content))
    return path


def failure(items: Iterator[object]) -> str:
    with pytest.raises(DataError) as caught:
        list(items)
    return str(caught.value)


@every_kind
@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"one\ntwo\n", ["one", "two"]),
        (b"one\ntwo", ["one", "two"]),
        (b"one\r\ntwo\r\n", ["one", "two"]),
        (b"\n \n", ["", " "]),
        (b"\xef\xbb\xbfone\n\xef\xbb\xbftwo\n", ["one", "\ufefftwo"]),
        ("a\u2028b\x85c\rd\x0be\x0cf\x1cg\n".encode(), ["a\u2028b\x85c\rd\x0be\x0cf\x1cg"]),
        ("你好。\n".encode(), ["你好。"]),
    ],
)
def test_lines_end_at_a_newline_and_nowhere_else(tmp_path: Path, suffix: str, content: bytes, lines: list[str]) -> None:
    assert list(read_lines(put(tmp_path / f"text{suffix}", content))) == lines


@pytest.mark.parametrize("longer", ["en", "de"])
def test_misaligned_files_name_both_and_their_counts(tmp_path: Path, longer: str) -> None:
    for name in ("en", "de"):
        put(tmp_path / name, b"line\n" * (1_234 if name == longer else 2))
    message = failure(read_parallel(tmp_path / "en", tmp_path / "de"))
    for name in ("en", "de"):
        assert f"{tmp_path / name} has {'1,234' if name == longer else '2'} lines" in message


@pytest.mark.parametrize(
    ("files", "faults"),
    [
        ({"text": b"good\nM\xe4d\ngood\n\xff\n"}, ["text:2: {} at byte 2 of the line, in b'M\\xe4d'", "text:4: {}"]),
        ({"en": b"a\n\xff\n", "de": b"\xff\nb\n"}, ["en:2: {}", "de:1: {}"]),
        ({"text": b"\xff\n" * 1000}, [f"text:{line}: {{}}" for line in range(1, MAX_PROBLEMS + 1)]),
    ],
)
def test_bad_utf8_names_files_lines_and_bytes(tmp_path: Path, files: dict[str, bytes], faults: list[str]) -> None:
    paths = [put(tmp_path / name, content) for name, content in files.items()]
    message = failure(read_lines(*paths) if len(paths) == 1 else read_parallel(*paths))
    assert all(f"{tmp_path}/{fault.format('not UTF-8')}" in message for fault in faults), message
    assert message.count("not UTF-8") == len(faults)
    assert ("perhaps more" in message, "aligned" in message) == (len(faults) == MAX_PROBLEMS, False)


def test_a_missing_column_names_file_line_and_what_it_has(tmp_path: Path) -> None:
    path = put(tmp_path / "pairs.tsv", b"one\teins\nno tab\n" + b"x" * 500 + b"\ty\nlast\n")
    message = failure(read_tsv(path, 0, 1))
    assert f"{path}:2: has 1 column where at least 2 are needed: 'no tab'" in message
    assert f"{path}:4: has 1 column" in message and ":3:" not in message
    message = failure(read_tsv(path, 0, 2))
    assert "has 2 columns where at least 3 are needed: 'xxx" in message and "x" * 100 not in message


@pytest.mark.parametrize("suffix", [".gz", ".xz"])
def test_a_compressed_file_cut_short(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"text{suffix}"
    text = "".join(f"line {number * 7919 % 10_007}\n" for number in range(20_000)).encode()
    whole = PACKERS[suffix](text)
    path.write_bytes(whole[: len(whole) // 2])
    message = failure(read_lines(path))
    assert f"{path}: the compressed file is cut short after line " in message
    other = put(tmp_path / "other", text)
    assert "aligned" not in failure(read_parallel(path, other))
    assert f"{path}: the compressed file is cut short" in failure(read_parallel(other, path))


@pytest.mark.parametrize("suffix", [".gz", ".xz"])
def test_a_corrupt_compressed_file(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"text{suffix}"
    path.write_bytes(b"not compressed\n")
    assert f"{path}: a damaged {suffix} file after line 0" in failure(read_lines(path))
    whole = bytearray(PACKERS[suffix](bytes(range(32, 127)) * 50))
    whole[len(whole) // 2] ^= 0xFF
    path.write_bytes(whole)
    assert str(path) in failure(read_lines(path))


@every_kind
def test_an_empty_corpus(tmp_path: Path, suffix: str) -> None:
    path = put(tmp_path / f"text{suffix}", b"")
    assert f"{path}: no text" in failure(read_lines(path))
    assert "empty" in failure(read_parallel(path, path))
    assert f"{path}: no text" in failure(read_tsv(path, 0, 1))


def test_missing_files_are_named_at_once_with_where_we_looked(tmp_path: Path) -> None:
    put(tmp_path / "train.en.gz", b"")
    with pytest.raises(DataError) as caught:
        read_parallel(tmp_path / "train.en", tmp_path / "nowhere" / "train.de")
    message = str(caught.value)
    assert f"not in {tmp_path} (did you mean train.en.gz?)" in message
    with pytest.raises(DataError, match=r"not in [^ ]*$"):  # no name is similar
        read_lines(put(tmp_path / "lm.toml", b"").with_name("val.jsonl"))
    assert f"the folder {tmp_path / 'nowhere'} does not exist" in message


def test_a_line_without_end_is_refused(tmp_path: Path) -> None:
    path = put(tmp_path / "text", b"good\n" + b"x" * (MAX_LINE_BYTES + 1))
    assert f"{path}:2: a line of more than 1,048,576 bytes" in failure(read_lines(path))
    with pytest.raises(DataError, match="a line of more than 1,048,576 bytes"):
        read_content(path)
