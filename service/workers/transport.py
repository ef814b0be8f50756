"""Transports. A transport starts a worker, and carries the messages between the service and this worker."""

import asyncio
import os
import pickle
import signal
import socket
import struct
import subprocess
import sys
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from io import BytesIO
from typing import Any, Protocol

from mt.pipeline.results import SentenceTranslation
from service.errors import error_location
from service.workers.messages import (
    Close,
    Deliver,
    FromWorker,
    ModelSetup,
    TextDone,
    ToWorker,
    TranslateOptions,
    WorkerStopped,
)

LENGTH = struct.Struct("!Q")  # number of bytes of a pickle, written before the pickle
MAX_KNOWN_BYTES = 1 << 24  # size of the pickled options that a worker keeps; the latest options are always kept
PART_SENTENCES = 50  # sentences of a translation in one frame; the service takes about 1 ms to read them
SERVICE_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # handled by the service, blocked in workers


class Transport(Protocol):
    """Connection to one worker. In each direction, messages arrive complete and in order."""

    def start(self, deliver: Deliver) -> None:
        """Start the worker. Then call `deliver` with the worker's messages in the running event loop.

        The last message is WorkerStopped.
        """

    def send(self, messages: Sequence[ToWorker]) -> None:
        """Send messages without blocking. Messages to a worker that has ended are dropped."""

    def kill(self) -> None:
        """End the worker at once."""


@dataclass(frozen=True)
class StartMessage:
    """The first message to a worker process."""

    setup: ModelSetup
    parent: int  # process id of the service
    load: Callable[[ModelSetup], Any] | None  # loads the model; None stands for worker_loop.load


def frames(messages: Sequence[FromWorker]) -> Iterator[object]:
    """Yield the objects that a worker sends one after the other: (id, sentences) of long translations, then a list.

    The list has the messages. A long translation in it has no sentences, because they precede it in parts.
    """
    short: list[FromWorker] = []
    for message in messages:
        if isinstance(message, TextDone) and len(sentences := message.translation.sentences) > PART_SENTENCES:
            for begin in range(0, len(sentences), PART_SENTENCES):
                yield message.id, sentences[begin : begin + PART_SENTENCES]
            message = TextDone(message.id, replace(message.translation, sentences=()))
        short.append(message)
    yield short


def complete(message: FromWorker, parts: dict[int, list[SentenceTranslation]]) -> FromWorker:
    """Return a message with all of its sentences. `parts` has those that arrived before it, by message id."""
    if isinstance(message, TextDone) and (sentences := parts.pop(message.id, None)):
        return TextDone(message.id, replace(message.translation, sentences=tuple(sentences)))
    return message


class OptionsMemory:
    """Translation options that one end of a connection has sent or received.

    Later messages refer to these options by their digest: a glossary is sent once and not with every text. If the
    options exceed MAX_KNOWN_BYTES, each end forgets the least recently used ones. Both ends forget the same options,
    because they process the same messages in the same order.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, tuple[TranslateOptions | None, int]] = OrderedDict()  # (options, size)
        self._size = 0

    def pack(self, messages: Sequence[ToWorker]) -> bytes:
        """Pickle messages. The service calls this method."""
        buffer = BytesIO()
        _OptionsPickler(buffer, self).dump(list(messages))
        return buffer.getvalue()

    def unpack(self, data: bytes) -> list[ToWorker]:
        """Return the messages that `pack` has pickled. The worker calls this method."""
        messages: list[ToWorker] = _OptionsUnpickler(BytesIO(data), self).load()
        return messages

    def reference(self, options: TranslateOptions) -> tuple[bytes, bytes]:
        """Return the digest and the pickle of options. The pickle is empty if the worker knows the options."""
        digest = options.digest
        if digest in self._known:
            self._known.move_to_end(digest)
            return digest, b""
        content = pickle.dumps(options, pickle.HIGHEST_PROTOCOL)
        self._add(digest, None, len(content))
        return digest, content

    def resolve(self, reference: tuple[bytes, bytes]) -> TranslateOptions:
        """Return the options for which `reference` has returned this digest and pickle."""
        digest, content = reference
        if content:
            self._add(digest, pickle.loads(content), len(content))
        self._known.move_to_end(digest)
        options, _ = self._known[digest]
        assert options is not None
        return options

    def _add(self, digest: bytes, options: TranslateOptions | None, size: int) -> None:
        self._known[digest] = options, size
        self._size += size
        while self._size > MAX_KNOWN_BYTES and len(self._known) > 1:
            _, (_, size) = self._known.popitem(last=False)
            self._size -= size


class _OptionsPickler(pickle.Pickler):
    def __init__(self, file: BytesIO, memory: OptionsMemory) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._memory = memory

    def persistent_id(self, obj: object) -> tuple[bytes, bytes] | None:
        return self._memory.reference(obj) if isinstance(obj, TranslateOptions) else None


class _OptionsUnpickler(pickle.Unpickler):
    def __init__(self, file: BytesIO, memory: OptionsMemory) -> None:
        super().__init__(file)
        self._memory = memory

    def persistent_load(self, pid: tuple[bytes, bytes]) -> TranslateOptions:
        return self._memory.resolve(pid)


class ProcessTransport:
    """Transport to a worker in a separate process (process.py), over a pair of sockets.

    The service starts process.py by name instead of importing it, because the service must not import torch.
    """

    def __init__(self, setup: ModelSetup, load: Callable[[ModelSetup], Any] | None = None) -> None:
        """Prepare the transport without starting the process. `load` loads the model, and must be picklable."""
        self._start_message = StartMessage(setup, os.getpid(), load)
        self._process: subprocess.Popen[bytes]
        self._transport: asyncio.WriteTransport | None = None
        self._unsent: list[bytes] = []  # data to send once the connection is open
        self._connection: asyncio.Task[None]
        self._told_to_stop = False
        self._memory = OptionsMemory()

    @property
    def pid(self) -> int:
        """Process id of the worker."""
        return self._process.pid

    def start(self, deliver: Deliver) -> None:
        ours, theirs = socket.socketpair()
        with theirs, _block_service_signals():
            self._process = subprocess.Popen(
                [sys.executable, "-m", "service.workers.process", str(theirs.fileno())],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                env=_environment(),
            )
        self._write(pickle.dumps(self._start_message))
        self._connection = asyncio.get_running_loop().create_task(self._run_connection(ours, deliver))

    def send(self, messages: Sequence[ToWorker]) -> None:
        self._told_to_stop = self._told_to_stop or any(isinstance(message, Close) for message in messages)
        self._write(self._memory.pack(messages))

    def kill(self) -> None:
        self._process.kill()

    def _write(self, data: bytes) -> None:
        framed = LENGTH.pack(len(data)) + data
        if self._transport is None:
            self._unsent.append(framed)
        elif not self._transport.is_closing():
            self._transport.write(framed)

    async def _run_connection(self, ours: socket.socket, deliver: Deliver) -> None:
        """Call `deliver` with the worker's messages until its process ends, and finally with WorkerStopped."""
        problem = ""
        parts: dict[int, list[SentenceTranslation]] = defaultdict(list)  # sentences of incomplete messages, by id
        try:
            reader, writer = await asyncio.open_unix_connection(sock=ours)
            self._transport = writer.transport
            writer.writelines(self._unsent)
            self._unsent.clear()
            while True:
                (length,) = LENGTH.unpack(await reader.readexactly(LENGTH.size))
                frame = pickle.loads(await reader.readexactly(length))
                if isinstance(frame, tuple):
                    parts[frame[0]] += frame[1]
                    await asyncio.sleep(0)  # reading a frame that has arrived does not wait
                    continue
                messages = [complete(message, parts) for message in frame]
                problem = next((message.problem for message in messages if isinstance(message, WorkerStopped)), problem)
                deliver([message for message in messages if not isinstance(message, WorkerStopped)])
        except (asyncio.IncompleteReadError, OSError):
            pass  # the process has ended or is ending; an incomplete message is dropped
        except Exception as error:
            problem = error_location(error)
        finally:
            self._process.kill()
            if self._transport is None:
                ours.close()
            else:
                self._transport.abort()
        status = await asyncio.to_thread(self._process.wait)
        if self._told_to_stop:
            problem = ""
        elif not problem:
            problem = f"killed by {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
        deliver([WorkerStopped(problem)])


def _environment() -> dict[str, str]:
    """Return the environment variables for a worker: those of this process, without settings such as the admin key."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MT_")}
    return kept | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


@contextmanager
def _block_service_signals() -> Iterator[None]:
    """Block SERVICE_SIGNALS in this thread while the context is open. Processes started meanwhile inherit the block.

    Ctrl-C is sent to every process of a terminal, and systemd's SIGTERM to every process of a service. A worker must
    ignore both signals and finish its texts.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SERVICE_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
