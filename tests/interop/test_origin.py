"""Pickles and YAML from strangers: damaged, with values that are no weights, or huge; weights without a place."""

import argparse
from itertools import pairwise
from pathlib import Path

import pytest
import torch
import yaml

from mt.errors import ModelError
from mt.interop.mapping import Row, find_misplaced
from mt.interop.origin import load_pickle, named_tensors, parse_yaml, shown

REBUILD = b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n"
DAMAGED = {
    "nothing on the stack": b".",
    "half a number": b"\x80\x02G\x00",
    "no end": b"\x80\x02",
    "no archive": b"PK\x03\x04",
    "a call without arguments": REBUILD + b")R.",
    "a call with a string for a storage": REBUILD + b"(U\x01aK\x00))\x89NtR.",
    "a call of the system": b"\x80\x02cos\nsystem\n(U\x04truetR.",
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_pickle_is_named(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(content)
    with pytest.raises(ModelError, match=r"model.bin: is damaged, or a pickle that runs code when it is read \("):
        load_pickle(path)


def test_entries_that_are_no_tensors_are_all_named(tmp_path: Path) -> None:
    weights = {"a": torch.ones(2), "b": torch.zeros(1)}
    assert named_tensors(weights, tmp_path) == weights
    with pytest.raises(ModelError) as caught:
        named_tensors({"epoch": 3, "state_dict": weights, "a": weights["a"], 7: weights["b"]}, tmp_path / "model.bin")
    assert str(caught.value).splitlines() == [
        f"{tmp_path / 'model.bin'} holds values that are not weights; accepted: named tensors only:",
        "  - 'epoch' is of type int",
        "  - 'state_dict' is of type dict",
        "  - 7 is not a string",
    ]


def test_yaml_cannot_state_more_than_it_holds() -> None:
    bomb = "a: &a [1, 1]\n" + "".join(f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]\n" for a, b in pairwise("abcdefghij"))
    with pytest.raises(yaml.YAMLError, match=r"an alias in line 2; accepted: YAML without aliases"):
        parse_yaml(bomb)
    with pytest.raises(yaml.YAMLError, match="nested too deeply"):
        parse_yaml("[" * 5000)
    assert parse_yaml("a: &b [1, x]\n") == {"a": [1, "x"]}


def test_errors_show_the_beginning_of_a_value() -> None:
    value: list[object] = []
    for _ in range(40):
        value = [value, value]
    assert shown(value) == "[[...], [...]]"
    assert shown({"en": 60}) == "{'en': 60}" and shown(0.5) == "0.5" and shown(None) == "None"
    assert shown(argparse.Namespace(a=value)) == "of type Namespace"
    assert len(shown("x" * 10**6)) == 60


def test_all_that_has_no_place_is_named() -> None:
    table = [Row(("q", "k"), ("qk",)), Row(("embedding",), ("input", "output"))]
    table += [Row(("q",), ("qk",)), Row(("gone",), ("nowhere",))]
    assert sorted(find_misplaced(table, ("q", "k", "embedding", "extra"), ("qk", "input", "output", "empty"))) == [
        "empty of the target model gets no weight",
        "extra of the source model has no counterpart",
        "gone is missing in the source model",
        "nowhere is missing in the target model",
        "q of the source model is used 2 times",
        "qk of the target model is set 2 times",
    ]
