"""The compiled kernels of the package belong to their source."""

import gzip
from hashlib import sha256

from mt.kernels.cuda.attention import COMPILED, MAX_ROWS


def test_the_compiled_kernels_are_those_of_the_source() -> None:
    """scripts/compile_kernels.sh writes the digest of the source that it compiles."""
    source = COMPILED.with_name("attention.cu").read_bytes()
    assert COMPILED.with_name("attention.sha256").read_text().strip() == sha256(source).hexdigest()
    compiled = gzip.decompress(COMPILED.read_bytes()).decode()
    assert all(f".entry attend_{rows}(" in compiled for rows in range(1, MAX_ROWS + 1))
