"""The compiled kernels of the package belong to their sources."""

import gzip
import re
from hashlib import sha256

import pytest

from mt.kernels.cuda.compiled import FOLDER


@pytest.mark.parametrize("name", ["attention", "beam_step"])
def test_the_compiled_kernels_are_those_of_the_source(name: str) -> None:
    """scripts/compile_kernels.sh writes the digest of the source that it compiles."""
    source = (FOLDER / f"{name}.cu").read_bytes()
    assert (FOLDER / f"{name}.sha256").read_text().strip() == sha256(source).hexdigest()
    entries = re.findall(rb"\.entry (\w+)\(", gzip.decompress((FOLDER / f"{name}.ptx.gz").read_bytes()))
    assert len(entries) == {"attention": 6, "beam_step": 10}[name]
