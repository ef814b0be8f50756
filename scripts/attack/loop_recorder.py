"""Recorder of the callbacks of an event loop, and of the garbage collections, that take long.

`Recorder` measures the processor time of every callback of asyncio's event loops in this process, and writes a line of
JSON for each one that takes LIMIT_SECONDS or more: its milliseconds and its stack. `findings` groups the lines.
"""

import asyncio
import gc
import json
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

LIMIT_SECONDS = 0.005
SAMPLE_SECONDS = 0.001
ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Recorder:
    """Measures callbacks. A thread takes samples of the stack while a callback runs for longer than the limit."""

    file: Path
    started: dict[int, float] = field(default_factory=dict)  # processor time at the start of the callback, by thread
    collection: float = 0.0  # processor time at the start of the garbage collection
    stacks: dict[int, Counter[str]] = field(default_factory=dict)  # samples of the callback that runs, by thread

    def install(self) -> None:
        """Replace the method by which asyncio runs callbacks."""
        run = asyncio.events.Handle._run

        def measured(handle: asyncio.Handle) -> None:
            thread = threading.get_ident()
            begin = self.started[thread] = time.thread_time()
            try:
                run(handle)
            finally:
                used = time.thread_time() - begin
                self.started.pop(thread, None)
                samples = self.stacks.pop(thread, Counter())
                if used >= LIMIT_SECONDS:
                    self._write(used, samples.most_common(1)[0][0] if samples else described(handle))

        def collected(phase: str, info: dict[str, int]) -> None:
            if phase == "start":
                self.collection = time.thread_time()
            elif (used := time.thread_time() - self.collection) >= LIMIT_SECONDS:
                name = f"collection of generation {info['generation']} in {threading.current_thread().name}"
                self._write(used, f"{name} < {stack_of(sys._getframe().f_back)}")

        setattr(asyncio.events.Handle, "_run", measured)  # noqa: B010
        gc.callbacks.append(collected)  # in any thread: it keeps the interpreter lock
        threading.Thread(target=self._sample, daemon=True).start()

    def _sample(self) -> None:
        while True:
            time.sleep(SAMPLE_SECONDS)
            frames = sys._current_frames()
            for thread, begin in list(self.started.items()):
                try:
                    used = time.clock_gettime(time.pthread_getcpuclockid(thread)) - begin
                except OSError:  # the thread has ended
                    continue
                if used >= LIMIT_SECONDS / 2 and (frame := frames.get(thread)):
                    self.stacks.setdefault(thread, Counter())[stack_of(frame)] += 1

    def _write(self, used: float, stack: str) -> None:
        line = json.dumps({"milliseconds": round(1000 * used, 1), "stack": stack})
        with self.file.open("a") as file:
            file.write(line + "\n")


def stack_of(frame: FrameType | None) -> str:
    """Return the lines of code of a stack within this recorder, the innermost first."""
    lines = []
    while frame is not None and frame.f_code.co_name != "measured":
        path = frame.f_code.co_filename.removeprefix(f"{ROOT}/").rpartition("site-packages/")[2]
        lines.append(f"{path}:{frame.f_lineno} {frame.f_code.co_name}")
        frame = frame.f_back
    return " < ".join(lines)


def described(handle: asyncio.Handle) -> str:
    """Return the name of a callback without samples: those take the interpreter lock, which some code keeps."""
    callback: Any = getattr(handle, "_callback", None)
    task = getattr(callback, "__self__", None)
    coroutine = task.get_coro() if isinstance(task, asyncio.Task) else None
    return f"(no sample) {getattr(coroutine or callback, '__qualname__', repr(callback))}"


def findings(file: Path, depth: int = 4) -> list[tuple[float, int, str]]:
    """Return (longest milliseconds, number, innermost lines of the stack) of the recorded callbacks, longest first."""
    longest: dict[str, float] = {}
    counts: Counter[str] = Counter()
    for line in file.read_text().splitlines() if file.exists() else []:
        entry = json.loads(line)
        ours = [part for part in entry["stack"].split(" < ") if part.startswith(("service/", "mt/"))]
        key = " < ".join([*entry["stack"].split(" < ")[:1], *ours][:depth])
        counts[key] += 1
        longest[key] = max(longest.get(key, 0.0), entry["milliseconds"])
    return sorted(((longest[key], counts[key], key) for key in counts), reverse=True)
