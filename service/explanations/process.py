"""`python -m service.explanations.process`: write one explanation; explanations.py starts this process.

The process reads an `ExplanationTask` as JSON from standard input and writes an `ExplanationOutcome` as JSON to
standard output. Loading the model in float32 and computing the page take seconds. A separate process keeps them from
delaying translations.
"""

import json
import os
import resource
import signal
import sys
import traceback
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import torch

from mt.checkpoint import load_model
from mt.errors import MTError, RequestError
from mt.insight.page import draw, html_page
from mt.insight.translation_record import explain
from mt.processes import end_with_parent
from service.explanations.messages import ExplanationOutcome, ExplanationStatus, ExplanationTask

NICENESS = 10  # lower priority than the models and the parsers
KILLED_FIRST = "900"  # of 1,000; if the machine runs out of memory, Linux kills this process before the service


def confine(memory_bytes: int, cpu_seconds: int) -> None:
    """Limit the processor time of this process and the memory that it allocates. Let torch use one thread.

    `memory_bytes` does not count the memory that is already allocated.
    """
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    size = pages * resource.getpagesize() + memory_bytes
    resource.setrlimit(resource.RLIMIT_AS, (size, size))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds + 10))  # SIGXCPU, then SIGKILL
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(KILLED_FIRST)
    torch.set_num_threads(1)


def run(task: ExplanationTask) -> ExplanationOutcome:
    """Create the page of a task. Return an outcome with the page or with the problem."""
    try:
        loaded = load_model(Path(task.model))
        record = explain(loaded, task.text, source=task.source, target=task.target)
        return ExplanationOutcome(ExplanationStatus.DONE, html_page(record, draw(record)))
    except RequestError as error:
        return ExplanationOutcome(ExplanationStatus.REFUSED, str(error))
    except MTError as error:
        return ExplanationOutcome(ExplanationStatus.FAILED, type(error).__name__)
    except (MemoryError, RuntimeError) as error:  # torch raises RuntimeError if it cannot allocate memory
        if isinstance(error, MemoryError) or "allocate memory" in str(error):
            return ExplanationOutcome(ExplanationStatus.MEMORY)
        return _failure(error)
    except Exception as error:
        return _failure(error)


def _failure(error: Exception) -> ExplanationOutcome:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return ExplanationOutcome(ExplanationStatus.FAILED, f"{type(error).__name__} at {frame.filename}:{frame.lineno}")


def main() -> None:
    """Read a task from standard input, run it, and write the outcome to standard output."""
    task = ExplanationTask(**json.load(sys.stdin))
    end_with_parent(task.parent)
    for number in (
        signal.SIGINT,
        signal.SIGTERM,
    ):  # these signals reach all processes of a group; the service ends this process itself
        signal.signal(number, signal.SIG_IGN)
    confine(task.memory_bytes, task.cpu_seconds)
    json.dump(asdict(run(task)), sys.stdout)


if __name__ == "__main__":
    os.nice(NICENESS)
    main()
