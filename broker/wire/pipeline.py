"""The connection as a state machine: what may be in flight, and what is answered in which order.

Sans-IO and deciding: the asyncio connection and the simulator's drive the same object. Requests
are begun in the order in which they arrived, at once, as long as the limits allow; they may finish
in any order; they leave in the order in which they were begun (promise-S1). A request that has no
answer (Produce with acks=0, promise-P1) only keeps its place: it leaves nothing behind.

A request may end in *closing* the connection: an error with acks=0 (promise-P2), bytes that are no
request. That takes effect when everything before it has left, because Kafka, which works on one
request at a time, would not have seen it earlier; from the moment it is decided nothing new begins.

At a limit nothing fails: `may_begin` is false until a request leaves, and whoever reads the
socket stops reading. Who waits behind whom is decided by `Limits` in one method and nowhere else:
one request at a time, as Kafka does it, is `Limits(requests=1)`; one produce request at a time and
nothing behind it, as Redpanda did it up to v22.1.4, is `produce_alone`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ottla.broker.config import ClusterConfig
from ottla.idempotency.profiles import profile_named


class Limits(NamedTuple):
    """How much one connection may have in flight."""

    requests: int
    """Requests begun and not yet left."""
    bytes: int
    """Bytes of those requests, and of what their answers may hold. One always fits."""
    produce_alone: bool = False
    """Nothing begins behind a produce request that has no answer yet (RP-STAGING)."""


def limits_of(config: ClusterConfig) -> Limits:
    """What the connections of a cluster may have in flight."""
    one_stage = profile_named(config.profile).one_stage
    return Limits(config.max_inflight_requests, config.max_inflight_bytes, one_stage)


class Slot:
    """The place of one request in its pipeline."""

    # Class attributes, not slots: what a slot begins with costs nothing then.
    parts: Sequence[bytes | memoryview] | None = None
    """The answer; None while there is none yet, empty when there will be none."""
    closing: str | None = None
    """Why the connection ends with this request."""
    on_lost: Callable[[], None] | None = None
    """Called once if the connection is lost before the request was finished."""

    def __init__(self, size: int):
        self.size = size
        """Bytes this request is charged for."""

    @property
    def produces(self) -> bool:
        """Whether it is a produce request; asked only where others may have to wait behind it."""
        return False

    @property
    def finished(self) -> bool:
        """Whether it is settled, by an answer or by the loss of the connection."""
        return self.parts is not None

    def finish(self, parts: Sequence[bytes | memoryview] = (), closing: str | None = None) -> bool:
        """Settle what this request leaves; False (and no change) when it was settled before."""
        if self.parts is not None:
            return False
        self.parts = parts
        self.closing = closing
        return True


class Pipeline:
    """See the module's text."""

    __slots__ = (
        "_held",
        "_in_flight",
        "_producing",
        "bytes",
        "closing",
        "doomed",
        "limits",
        "may_begin",
        "ready",
    )

    def __init__(self, limits: Limits):
        self.limits = limits
        self._in_flight: deque[Slot] = deque()
        self._producing: Slot | None = None
        """The produce request that others wait behind."""
        self._held = 0
        """Works of requests in flight that others wait behind."""
        self.bytes = 0
        """What is charged for the requests in flight."""
        self.ready: list[Slot] = []
        """Slots that may leave now, in order; the driver sends and clears them."""
        self.may_begin = True
        """Whether the next request may be begun now."""
        self.doomed = False
        """A closing slot exists: nothing new begins."""
        self.closing: str | None = None
        """Set when the driver should close, once `ready` has been sent."""

    def __len__(self) -> int:
        """Requests in flight."""
        return len(self._in_flight)

    def begin(self, slot: Slot) -> None:
        """Take in the next request in order of arrival."""
        in_flight = self._in_flight
        in_flight.append(slot)
        self.bytes += slot.size
        requests, most_bytes, produce_alone = self.limits
        if produce_alone and slot.produces:
            self._producing = slot
            self._decide()
        elif len(in_flight) >= requests or self.bytes >= most_bytes:
            self._decide()

    def charge(self, slot: Slot, size: int) -> None:
        """Charge a request in flight for `size` bytes more, which its answer may come to hold."""
        slot.size += size
        self.bytes += size
        self._decide()

    def hold(self) -> None:
        """Nothing begins before `release`: a request in flight is at work, over several turns of
        the loop. What it begins must come before what those behind it begin."""
        self._held += 1
        self._decide()

    def release(self) -> None:
        """The end of a `hold`."""
        self._held -= 1
        self._decide()

    def done(self, slot: Slot) -> None:
        """`slot` has been finished: everything that thereby may leave goes to `ready`."""
        if slot is self._producing:
            self._producing = None
            self._decide()
        if slot.closing is not None:
            self.doomed = True
            self._decide()
        in_flight = self._in_flight
        if in_flight[0] is not slot:
            return
        while in_flight and in_flight[0].parts is not None:
            first = in_flight.popleft()
            self.bytes -= first.size
            if first.closing is not None:
                self.closing = first.closing
                return
            self.ready.append(first)
        if not self.may_begin:
            self._decide()

    def _decide(self) -> None:
        """The one place that says whether a request may be begun."""
        in_flight = len(self._in_flight)
        room = in_flight < self.limits.requests and self.bytes < self.limits.bytes
        free = self._producing is None and not self._held and not self.doomed
        self.may_begin = free and (in_flight == 0 or room)

    def lost(self) -> list[Slot]:
        """The connection is gone: the slots nobody will hear of, finished, in order.

        The driver calls `on_lost` of those that have one.
        """
        self.doomed = True
        unfinished = [slot for slot in self._in_flight if slot.finish()]
        self._in_flight.clear()
        self._producing = None
        self.ready.clear()
        self.bytes = 0
        self._decide()
        return unfinished
