import re
from itertools import pairwise

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

from mt.insight.pictures import DARK, INK, LIGHT, PAPER, HeatMap, heat_maps, ordered, svg
from mt.insight.translation_record import TranslationRecord


def test_heat_maps_have_weights_and_labels(explanation: TranslationRecord, pictures: dict[str, Figure]) -> None:
    weights = explanation.record.of("cross")[1].weights
    maps = pictures["attention-cross-2"].axes
    assert len(maps) == len(weights) + 1
    for axes, head in zip(maps, [*weights, weights.mean(0)], strict=True):
        values = torch.tensor(axes.images[0].get_array())
        torch.testing.assert_close(values[:-1].float(), head)
        torch.testing.assert_close(values[-1].float(), head.mean(0))
        assert [label.get_text() for label in axes.get_yticklabels()] == [*explanation.target, "mean"]
        assert [label.get_text() for label in axes.get_xticklabels()] == [*explanation.source, "<pad>", "<pad>"]


def test_colours_of_signs_and_of_both_themes(pictures: dict[str, Figure]) -> None:
    figure = heat_maps("t", [HeatMap.scaled("m", torch.tensor([[-4.0, 0.0, 4.0, 2.0]]), ["r"])], 1, (1, 1), square=True)
    [image] = figure.axes[0].images
    low, zero, high, half = np.asarray(image.to_rgba(np.asarray(image.get_array())))[0].tolist()
    assert low[3] == high[3] == 1 and low[0] > low[2] and high[0] < high[2]
    assert zero[3] < 0.01 and half[3] == pytest.approx(0.5, abs=0.01) and half[:3] == pytest.approx(high[:3])
    file = svg(pictures["tokens-source"])
    assert file == svg(pictures["tokens-source"]), "equal pictures are equal files"
    assert all(color in file for color in (*LIGHT.values(), *DARK.values()))
    assert INK not in file and PAPER not in file
    assert "&lt;/s&gt;" in re.findall(r"<text[^>]*>([^<]*)</text>", file)


def test_edges_of_the_tree_do_not_cross(explanation: TranslationRecord) -> None:
    columns = ordered(explanation.tree.nodes)
    assert sum(map(len, columns)) == len(explanation.tree.nodes)
    for before, column in pairwise(columns):
        parents = [explanation.tree.nodes[node.parent] for node in column]
        places = [next(row for row, node in enumerate(before) if node is parent) for parent in parents]
        assert places == sorted(places)
