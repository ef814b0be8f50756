"""PNG files of drawings, by their pixels."""

from pathlib import Path

import pytest

from mt.insight.drawing import LIGHT, Cells, Drawing
from mt.insight.png import DENSITY, write_png

image = pytest.importorskip("matplotlib.image")
colors = pytest.importorskip("matplotlib.colors")


def test_cells_have_their_place_and_their_colours(tmp_path: Path) -> None:
    """Cells of 10 x 10 pixels whose upper left corner is at (20, 10): 1 and -1, then -1 and 1."""
    cells = Cells(20, 10, (10, 10), [[1.0, -1.0], [-1.0, 1.0]], ["a", "b"], ["c", "d"])
    write_png(Drawing("t", 60, 40, [cells]), LIGHT, tmp_path / "a.png")
    pixels = image.imread(tmp_path / "a.png")
    assert pixels.shape[:2] == (40 * DENSITY, 60 * DENSITY)

    def color(x: int, y: int) -> str:
        return str(colors.to_hex(pixels[y * DENSITY, x * DENSITY]))

    assert [color(25, 15), color(35, 15)] == [LIGHT["high"], LIGHT["low"]]
    assert [color(25, 25), color(35, 25)] == [LIGHT["low"], LIGHT["high"]]
    assert {color(x, y) for x, y in ((10, 15), (45, 15), (25, 5), (25, 35))} == {LIGHT["paper"]}
