"""The connection as a state machine: what may be in flight, and in which order answers leave.

Sans-IO: the asyncio connection and the simulator's connection use the same object. Requests begin
in the order in which they arrived, as soon as the limits allow. They may finish in any order. Their
answers leave in the order in which they began (promise-S1). A request without an answer (Produce
with acks=0, promise-P1) only keeps its place in that order.

A request may end by *closing* the connection: an error with acks=0 (promise-P2), or bytes that are
not a request. Once that is decided, no further request begins. The connection closes when
everything before has left, because Kafka, which handles one request at a time, would not have seen
the error earlier.

At a limit nothing fails: `may_begin` is false until a request leaves, and the socket is not read.
Only `_decide` says by `Limits` which request waits. One request at a time, as in Kafka, is
`Limits(requests=1)`. One produce request at a time with nothing behind it, as in Redpanda up to
v22.1.4, is `produce_alone`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ottla.broker.config import ClusterConfig
from ottla.broker.profiles.named import profile_named


class Limits(NamedTuple):
    """How much one connection may have in flight."""

    requests: int
    """Limit of requests that have begun and whose answers have not left."""
    bytes: int
    """Limit of the bytes of those requests and of their answers. A single request is always
    allowed."""
    produce_alone: bool = False
    """Whether no request begins while a produce request has no answer (RP-STAGING)."""


def limits_of(config: ClusterConfig) -> Limits:
    """The limits of each connection of a cluster."""
    profile = profile_named(config.profile)
    requests = 1 if profile.one_at_a_time else config.max_inflight_requests
    return Limits(requests, config.max_inflight_bytes, profile.one_stage)


class Slot:
    """The place of one request in its pipeline."""

    # Class attributes, so that a new slot need not set them.
    parts: Sequence[bytes | memoryview] | None = None
    """The answer. None: there is none yet; empty: there will be none."""
    closing: str | None = None
    """Why the connection closes after this request; None: it does not."""
    on_lost: Callable[[], None] | None = None
    """Called once if the connection is lost before the request was finished."""

    def __init__(self, size: int):
        self.size = size
        """How many bytes this request counts for."""

    @property
    def produces(self) -> bool:
        """Whether it is a produce request; used only with `Limits.produce_alone`."""
        return False

    @property
    def finished(self) -> bool:
        """Whether it is finished, by an answer or by the loss of the connection."""
        return self.parts is not None

    def finish(self, parts: Sequence[bytes | memoryview] = (), closing: str | None = None) -> bool:
        """Finish the request with its answer. False, and no change: it was finished before."""
        if self.parts is not None:
            return False
        self.parts = parts
        self.closing = closing
        return True


class Pipeline:
    """See the module's docstring."""

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
        """The produce request for which others wait (`Limits.produce_alone`)."""
        self._held = 0
        """How many calls of `hold` are not released; other requests wait for them."""
        self.bytes = 0
        """The bytes that the requests in flight count for."""
        self.ready: list[Slot] = []
        """Slots that may leave now, in order; the driver sends and clears them."""
        self.may_begin = True
        """Whether the next request may be begun now."""
        self.doomed = False
        """Whether a slot will close the connection: no further request begins."""
        self.closing: str | None = None
        """Why the driver must close the connection once `ready` is sent; None: it must not."""

    def __len__(self) -> int:
        """How many requests are in flight."""
        return len(self._in_flight)

    def begin(self, slot: Slot) -> None:
        """Add the next request, in order of arrival."""
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
        """Count `size` more bytes for a request in flight, which its answer may need."""
        slot.size += size
        self.bytes += size
        self._decide()

    def hold(self) -> None:
        """Let no request begin before `release`. A request in flight works over several iterations
        of the loop, and all that it does must come before what later requests do."""
        self._held += 1
        self._decide()

    def release(self) -> None:
        """The end of a `hold`."""
        self._held -= 1
        self._decide()

    def done(self, slot: Slot) -> None:
        """`slot` is finished: move all answers that may leave now to `ready`."""
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
        """Set `may_begin`: the only place that decides whether a request may begin."""
        in_flight = len(self._in_flight)
        room = in_flight < self.limits.requests and self.bytes < self.limits.bytes
        free = self._producing is None and not self._held and not self.doomed
        self.may_begin = free and (in_flight == 0 or room)

    def lost(self) -> list[Slot]:
        """The connection is lost: finish all unfinished slots and return them, in order.

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
