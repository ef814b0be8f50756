"""Settings and rows of the training benchmark."""

from scripts.benchmark import train
from scripts.benchmark.train_task import TrainResult, TrainSettings, TrainTask

TASK = TrainTask("", "", "", 9, 8, 8, 2, 1, 0.0, 0.1, rate=1.0, warmup=4, clip=1.0)


def test_a_row_of_the_training_table() -> None:
    """The first result, of the warm-up, counts only for the losses."""
    row = train.TrainRow("ours", TrainSettings("float32", threads=1))
    row.results = [
        TrainResult(9.0, 9.0, 1_000_000, losses=[80.0, 60.0], tokens=[10, 10]),
        TrainResult(2.0, 4.0, 3_000_000, losses=[40.0, 30.0], tokens=[10, 20]),
    ]
    assert row.cells() == ["ours", "float32, 1x1", "15", "", "8", "8.000", "1.500", "3"]


def test_rates_rise_to_the_end_of_the_warm_up() -> None:
    assert [TASK.rate_of(update) for update in (1, 2, 4, 5)] == [0.25, 0.5, 1, 1]
