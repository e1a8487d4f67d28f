"""The load generator: a process of its own, one blocking connection, as little work as possible.

It keeps `in_flight` requests on the way: for every answer it sends a request, each with a system
call of its own, as clients do. `lockstep` sends all of them in one piece and waits for the last
answer, so that a server sees the same bursts in every round, whatever the machine is doing.

Every answer is counted by its correlation id and must carry error 0.
"""

from __future__ import annotations

import json
import socket
import sys
import time
from struct import Struct
from typing import Any

from bench.frames import Frame, error_at
from bench.pipe import say

TIMEOUT_S = 60

_HEAD = Struct(">ii")
_SHORT = Struct(">h")


class Connection:
    """One connection and its count of requests and answers."""

    def __init__(self, address: tuple[str, int], frame: Frame, topic: str, count: int):
        self.frame = frame
        self.count = count
        self.sent_at = [0.0] * count
        self.latency = [0.0] * count
        self.sent = 0
        self.answered = 0
        self._error_at = error_at(topic)
        self._rest = b""
        self._socket = socket.create_connection(address, TIMEOUT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, requests: int, *, together: bool = False) -> None:
        """Send the next requests, at most as many as are left: one by one, or all in one piece."""
        frame = self.frame
        first, last = self.sent, min(self.sent + requests, self.count)
        pieces = []
        for number in range(first, last):
            frame.stamp(number)
            self.sent_at[number] = time.perf_counter()
            if together:
                pieces.append(bytes(frame.data))
            else:
                self._socket.sendall(frame.data)
        if pieces:
            self._socket.sendall(b"".join(pieces))
        self.sent = last

    def receive(self) -> int:
        """Wait for at least one answer; returns how many came."""
        before = self.answered
        while self.answered == before:
            received = self._socket.recv(1 << 16)
            if not received:
                raise ConnectionResetError(f"closed after {self.answered} of {self.count} answers")
            self._count(self._rest + received if self._rest else received)
        return self.answered - before

    def _count(self, data: bytes) -> None:
        now = time.perf_counter()
        at = 0
        while len(data) - at >= 8:
            size, number = _HEAD.unpack_from(data, at)
            if len(data) - at - 4 < size:
                break
            (error,) = _SHORT.unpack_from(data, at + self._error_at)
            if error or number != self.answered:
                raise ValueError(f"answer {number} with error {error}, expected {self.answered}")
            self.latency[number] = now - self.sent_at[number]
            self.answered += 1
            at += 4 + size
        self._rest = data[at:]

    def close(self) -> None:
        """End the connection."""
        self._socket.close()


def run(
    *,
    address: list[Any],
    topic: str,
    size: int,
    count: int,
    in_flight: int = 5,
    producer_id: int = -1,
    lockstep: bool = False,
) -> dict[str, Any]:
    """Send `count` requests and wait for their answers."""
    frame = Frame(topic, size, producer_id=producer_id)
    connection = Connection((address[0], address[1]), frame, topic, count)
    cpu, start = time.process_time(), time.perf_counter()
    connection.send(in_flight, together=lockstep)
    while connection.answered < count:
        came = connection.receive()
        if not lockstep:
            connection.send(came)
        elif connection.answered == connection.sent:
            connection.send(in_flight, together=True)
    seconds = time.perf_counter() - start
    connection.close()
    ordered = sorted(connection.latency)
    return {
        "seconds": seconds,
        "cpu": time.process_time() - cpu,
        "p50": ordered[count // 2],
        "p99": ordered[count * 99 // 100],
    }


def main() -> None:
    """Serve the bench until its pipe ends."""
    say(ready=True)
    for line in sys.stdin:
        asked = json.loads(line)
        asked.pop("do")
        try:
            say(**run(**asked))
        except (OSError, ValueError) as error:
            say(error=f"load: {error!r}")


if __name__ == "__main__":
    main()
