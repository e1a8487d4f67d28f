"""A broker under hostile frames: `ottla up` in a process of its own, and the checks around it.

`under_fire` starts it, sends valid frames, and lets the caller send hostile ones. Then it checks
that nothing has happened: the process lives and has not grown by more than 100 MB, connections that
sent nothing bad are open, a bystander got right answers all the time, valid frames are answered as
before, and no handler has failed.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from fuzz_fire import MARKER, Fire, Outcome
from fuzz_frames import FRAME, PARTITIONS, PRODUCE, SERVED, TOPIC, Frame, request
from fuzz_hostile import changed_batch, changed_request, changed_size
from ottla.broker.wire.codec import response_schema, skip_tags

GROWTH_BYTES = 100 << 20
_STEADY = {18, 60}
"""APIs whose answers to the same requests are the same before and after, byte for byte: a change of
a frame may well create a topic, or store a batch."""
_PER_SCHEMA = 12
_ASK_EVERY = 10_000
"""Frames after which the witnesses ask: well within ten minutes."""


class Report(NamedTuple):
    """What was seen."""

    outcome: Outcome
    grown_bytes: int
    """By how much more memory than at the start the process ever had."""
    bystander: dict[str, Any]

    def __str__(self) -> str:
        grown = f"grown by {self.grown_bytes / 2**20:.1f} MB at most"
        return f"{self.outcome}; {grown}; beside it: {self.bystander}"


def valid_frames(rng: Random) -> list[Frame]:
    """Some of every API and version."""
    return [request(rng, key, version) for key, version in SERVED for _ in range(_PER_SCHEMA)]


def hostile_frames(seed: int, count: int) -> Iterator[bytes]:
    """`count` frames with one change each, in an order and with values that the seed decides."""
    rng = Random(seed)
    frames: list[Frame] = []
    batches: list[Frame] = []
    for number in range(count):
        if number % 50_000 == 0:
            frames = valid_frames(rng)
            batches = [frame for frame in frames if frame.batch is not None]
        kind = rng.random()
        if kind < 0.02:
            yield changed_size(rng.choice(frames), rng)
        elif kind < 0.2:
            yield changed_batch(rng.choice(batches), rng)
        elif kind < 0.97:
            yield changed_request(rng.choice(frames), rng)
        else:
            yield rng.choice(frames).data


def under_fire(frames: Iterator[bytes]) -> Report:
    """Send these frames to a new broker; see the module's text."""
    with tempfile.TemporaryFile("w+") as log:
        child = subprocess.Popen(
            [
                *(sys.executable, "-m", "ottla", "up", "--nodes", "1", "--port", "0"),
                *("--topic", f"{TOPIC}:{PARTITIONS}:1", "--topic", "calm:1:1"),
            ],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        try:
            report = _watch(child, frames)
        except (OSError, AssertionError) as error:
            log.seek(0)
            said = log.read()[-5000:]
            raise AssertionError(f"{error!r}, status {child.poll()}, said:\n{said}") from error
        finally:
            child.kill()
            child.wait()
        log.seek(0)
        said = log.read()
        assert "Traceback" not in said, said[:5000]
    return report


def _watch(child: subprocess.Popen[str], frames: Iterator[bytes]) -> Report:
    assert child.stdout is not None
    host, _, port = child.stdout.readline().strip().rpartition("=")[2].rpartition(":")
    address = (host, int(port))
    good = [frame.data for frame in valid_frames(Random(1))]
    witnesses = [socket.create_connection(address, 30) for _ in range(4)]
    before = _answers(address, good)
    bystander = _Bystander(address)
    start = memory(child.pid, "VmRSS")
    outcome = Fire(address, _among(frames, witnesses)).run()
    assert child.poll() is None, f"the process ended with {child.returncode}"
    grown = memory(child.pid, "VmHWM") - start
    seen = bystander.figures()
    for witness in witnesses:
        _ask(witness)
        witness.close()
    assert _answers(address, good) == before
    assert grown < GROWTH_BYTES, f"grown by {grown >> 20} MB"
    return Report(outcome, grown, seen)


def _among(frames: Iterator[bytes], witnesses: list[socket.socket]) -> Iterator[bytes]:
    """The frames; now and then the witnesses ask, lest they be dropped for being idle."""
    for number, frame in enumerate(frames):
        if number % _ASK_EVERY == 0:
            for witness in witnesses:
                _ask(witness)
        yield frame


def _ask(witness: socket.socket) -> None:
    """An answer to a connection that sends nothing bad."""
    witness.sendall(MARKER)
    assert _frame_from(witness)[:4] == MARKER[8:12]


def memory(pid: int, what: str) -> int:
    """Bytes of memory of a process: VmRSS now, VmHWM at most so far."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
        if line.startswith(what):
            return int(line.split()[1]) * 1024
    raise AssertionError(f"process {pid} has no {what}")


def _answers(address: tuple[str, int], good: list[bytes]) -> list[bytes]:
    """What valid frames are answered, where that does not change. Everything is answered, in the
    version it was asked in."""
    steady = []
    sock = socket.create_connection(address, 30)
    for data in good:
        _, key, version, correlation_id, _ = FRAME.unpack_from(data)
        sock.sendall(data + MARKER)
        try:
            found = _frame_from(sock)
        except ConnectionError:
            assert key == PRODUCE, "only an error with acks=0 is shown so"
            sock.close()
            sock = socket.create_connection(address, 30)
            continue
        if found[:4] != MARKER[8:12]:
            assert int.from_bytes(found[:4], "big") == correlation_id
            schema = response_schema(key, version)
            schema.read(found, skip_tags(found, 4) if schema.header_tags else 4)
            if key in _STEADY:
                steady.append(found)
            found = _frame_from(sock)
        assert found[:4] == MARKER[8:12]
    sock.close()
    return steady


def _frame_from(sock: socket.socket) -> bytes:
    size = int.from_bytes(_exactly(sock, 4), "big")
    return _exactly(sock, size)


def _exactly(sock: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = sock.recv(size - len(data))
        if not more:
            raise ConnectionError("the connection was closed")
        data += more
    return data


class _Bystander:
    """`fuzz_bystander` in a process of its own."""

    def __init__(self, address: tuple[str, int]):
        script = Path(__file__).with_name("fuzz_bystander.py")
        self._process = subprocess.Popen(
            [sys.executable, str(script), address[0], str(address[1])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "begun\n"

    def figures(self) -> dict[str, Any]:
        """End it; what it measured. Fails when it saw a wrong answer or lost its connection."""
        out, err = self._process.communicate("", timeout=60)
        assert self._process.returncode == 0, err
        figures: dict[str, Any] = json.loads(out)
        return figures
