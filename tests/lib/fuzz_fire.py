"""Sends hostile frames to a broker, fast: many connections at once, each with one frame in flight.

After each frame comes a *marker*, an ApiVersions 0 request that every broker answers. A connection
that gives the marker's answer has survived its frame and gets the next one. A connection may be
closed. One that is silent for a while is given up, because its frame may have announced more bytes,
or may wait. None of these is an error. The callers check for errors: the process ends, grows, or
serves others late or wrongly.
"""

from __future__ import annotations

import selectors
import socket
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from struct import Struct

from fuzz_frames import FRAME

MARK = 0x7A7A7A7A
MARKER = FRAME.pack(10, 18, 0, MARK, -1)
_HEAD = Struct(">ii")
CONNECTIONS = 64
SILENT_AFTER = 1.0
"""Seconds: two frames in a hundred are of this kind."""


@dataclass
class Outcome:
    """How many frames ended how."""

    sent: int = 0
    answered: int = 0
    closed: int = 0
    silent: int = 0
    seconds: float = 0.0

    def __str__(self) -> str:
        rate = self.sent / max(self.seconds, 1e-9)
        return (
            f"{self.sent} frames in {self.seconds:.0f} s ({rate:.0f} a second): connection kept "
            f"{self.answered}, closed {self.closed}, silent {self.silent}"
        )


@dataclass
class _Line:
    """One connection, and what it waits for."""

    socket: socket.socket
    number: int = 0
    """Counts its frames, so that a deadline knows whether it is for the one in flight."""
    received: bytearray = field(default_factory=bytearray)


class Fire:
    """Sends all frames to an address; see the module's text. Raises `OSError` when nobody listens:
    then the process has ended."""

    def __init__(self, address: tuple[str, int], frames: Iterator[bytes]):
        self._address = address
        self._frames = frames
        self._selector = selectors.DefaultSelector()
        self._deadlines: deque[tuple[float, _Line, int]] = deque()
        self.outcome = Outcome()

    def run(self) -> Outcome:
        """Send everything, and wait for what becomes of it."""
        started = time.monotonic()
        with self._selector:
            for _ in range(CONNECTIONS):
                self._open()
            while self._selector.get_map():
                for key, _ in self._selector.select(0.02):
                    self._read(key.data)
                self._give_up(time.monotonic())
        self.outcome.seconds = time.monotonic() - started
        return self.outcome

    def _open(self) -> None:
        """A new connection for the next frame, if there is one."""
        frame = next(self._frames, None)
        if frame is None:
            return
        sock = socket.socket()  # create_connection looks names up
        sock.settimeout(30)
        sock.connect(self._address)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        line = _Line(sock)
        self._selector.register(sock, selectors.EVENT_READ, line)
        self._send(line, frame)

    def _send(self, line: _Line, frame: bytes) -> None:
        self.outcome.sent += 1
        line.number += 1
        self._deadlines.append((time.monotonic() + SILENT_AFTER, line, line.number))
        try:
            line.socket.sendall(frame + MARKER)
        except OSError:
            self.outcome.closed += 1
            self._close(line)

    def _close(self, line: _Line) -> None:
        """End a connection, and begin another."""
        line.number += 1
        self._selector.unregister(line.socket)
        line.socket.close()
        self._open()

    def _read(self, line: _Line) -> None:
        if line.socket.fileno() < 0:
            return
        try:
            data = line.socket.recv(1 << 18)
        except OSError:
            data = b""
        if not data:
            self.outcome.closed += 1
            self._close(line)
            return
        line.received += data
        if not _marked(line.received):
            return
        self.outcome.answered += 1
        line.received.clear()
        frame = next(self._frames, None)
        if frame is None:
            line.number += 1
            self._selector.unregister(line.socket)
            line.socket.close()
        else:
            self._send(line, frame)

    def _give_up(self, now: float) -> None:
        while self._deadlines and self._deadlines[0][0] <= now:
            _, line, number = self._deadlines.popleft()
            if line.number == number:
                self.outcome.silent += 1
                self._close(line)


def _marked(received: bytearray) -> bool:
    """Take whole answers from the front; whether the marker's was among them."""
    at = 0
    marked = False
    while len(received) - at >= _HEAD.size:
        size, correlation_id = _HEAD.unpack_from(received, at)
        assert 4 <= size <= 1 << 28, f"an answer of {size} bytes"
        if len(received) - at < 4 + size:
            break
        at += 4 + size
        marked = correlation_id == MARK
    del received[:at]
    return marked
