"""How often one produce request moves between files of Ottla, and how many files it passes.

A reader who follows a request must change files at each move. The request has acks=all and one
record, and is alone on a cluster of three nodes whose clock stands still (`bursts.py`). A move is a
line that runs in another of Ottla's files than the line before it, on all three replicas, until the
followers have heard of the commit. The files that hold its ticket are those that run a line with a
`ProduceTicket` as an argument, a local variable, or `self`.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median
from types import FrameType
from typing import Any

from bench.bursts import OWN_CODE, WARM_UP, Plan, deliver, frames, standing_leader
from bench.measure import Outcome, Report
from ottla.broker.client import Exchange
from ottla.broker.turn.tickets import ProduceTicket

FULL = Plan(51)
QUICK = Plan(5)


class Trace:
    """What ran while it was on."""

    def __init__(self) -> None:
        self.moves = 0
        self.files: set[str] = set()
        self.of_ticket: set[str] = set()
        self._last = ""

    def look(self, frame: FrameType, event: str, _argument: Any) -> Any:
        """The tracer (`sys.settrace`)."""
        path = frame.f_code.co_filename
        if not any(each in path for each in OWN_CODE):
            return None
        if event == "line":
            self.moves += path != self._last
            self._last = path
            self.files.add(path)
            if path not in self.of_ticket and any(
                isinstance(each, ProduceTicket) for each in frame.f_locals.values()
            ):
                self.of_ticket.add(path)
        return self.look


def run(plan: Plan) -> Report:
    """Plain and idempotent."""
    outcomes = []
    for name, idempotent in (("plain", False), ("idempotent", True)):
        traces = asyncio.run(_trace_requests(plan.bursts, idempotent=idempotent))
        counts = [each.moves for each in traces]
        outcomes += [
            Outcome(
                f"moves between files, {name}",
                median(counts),
                "moves",
                note=f"{min(counts):,} to {max(counts):,}",
            ),
            Outcome(f"files that run, {name}", median(len(each.files) for each in traces), "files"),
            Outcome(
                f"files that hold its ticket, {name}",
                median(len(each.of_ticket) for each in traces),
                "files",
                target=8,
                note=" ".join(sorted(map(_short, traces[-1].of_ticket))),
            ),
        ]
    return Report("moves", outcomes)


def _short(path: str) -> str:
    return "/".join(path.rsplit("/", 2)[1:])


async def _trace_requests(requests: int, *, idempotent: bool) -> list[Trace]:
    async with standing_leader() as (connection, transport):
        exchange, found = Exchange(), []
        for number in range(WARM_UP + requests):
            sent = frames(exchange, range(number, number + 1), idempotent)
            with _on() as trace:
                await deliver(connection, transport, sent, 1)
            found.append(trace)
        return found[WARM_UP:]


@contextmanager
def _on() -> Iterator[Trace]:
    trace = Trace()
    sys.settrace(trace.look)
    try:
        yield trace
    finally:
        sys.settrace(None)
