"""Reliability diagram of the confidence of a model. It needs matplotlib, which the extra `training` installs."""

from pathlib import Path

from matplotlib.figure import Figure

from mt.errors import DataError
from mt.evaluation import Reliability


def plot_reliability(reliability: Reliability, path: Path) -> None:
    """Plot mean chrF over confidence, and write the diagram to `path`.

    Raises:
        DataError: if the file cannot be written.
    """
    figure = Figure(figsize=(5, 5), layout="constrained")
    axes = figure.add_subplot(xlabel="confidence", ylabel="sentence chrF / 100", xlim=(0, 1), ylim=(0, 1))
    axes.plot([0, 1], [0, 1], color="gray", linestyle="--", linewidth=1)
    axes.plot([row.confidence for row in reliability.bins], [row.chrf for row in reliability.bins], marker="o")
    sentences = sum(row.sentences for row in reliability.bins)
    axes.set_title(f"{sentences:,} sentences, Spearman {reliability.spearman:.2f}, mean gap {reliability.error:.3f}")
    try:
        figure.savefig(path)
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot be written ({error}); accepted: a file name such as plot.png") from error
