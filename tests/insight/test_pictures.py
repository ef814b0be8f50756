"""Positions of what the pictures show."""

from mt.insight.drawing import Line, Text
from mt.insight.pictures import distance_curve


def test_the_labels_of_an_axis_are_beside_their_lines() -> None:
    drawing = distance_curve([2.0, 1.0, -2.0], "products")
    lines = [shape.y1 for shape in drawing.shapes if isinstance(shape, Line) and shape.y1 == shape.y2]
    labels = [(shape.content, shape.y) for shape in drawing.shapes if isinstance(shape, Text) and shape.anchor == "end"]
    assert [content for content, _ in labels] == ["-2.0", "-1.0", "0.0", "1.0", "2.0"]
    assert [y - line for (_, y), line in zip(labels, lines, strict=True)] == [4.0] * 5  # baselines
    assert lines == sorted(lines, reverse=True)
