"""The embedded corpus, also called phrasebook: sentences of a traveller in English and German. See README.md."""

import gzip
from pathlib import Path

from mt.files import atomic_file

SPLITS = ("train", "valid", "test")


def write_phrasebook(folder: Path) -> None:
    """Write train.tsv, valid.tsv and test.tsv, with the tab-separated columns English, German and construction."""
    folder.mkdir(parents=True, exist_ok=True)
    for split in SPLITS:
        content = gzip.decompress(Path(__file__).with_name(f"{split}.tsv.gz").read_bytes())
        with atomic_file(folder / f"{split}.tsv") as path:
            path.write_bytes(content)
