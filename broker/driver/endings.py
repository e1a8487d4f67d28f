"""How leaderships, replicas and nodes end: what is answered, and what the log says."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from ottla.broker.driver.hosted import Seat
from ottla.broker.turn.tickets import answer, not_stored
from ottla.log.errors import StoreError
from ottla.raft.types import Micros, NodeId

log = logging.getLogger("ottla")


def close_replica(seat: Seat, node: NodeId, now: Micros, store_failed: bool) -> None:
    """No turns any more: answer who waits, as well as a replica that may be broken can."""
    seat.gone, seat.dirty = True, False
    try:
        waiting = seat.replica.close(now)
        answer(not_stored(waiting) if store_failed else waiting, node)
    except Exception:
        log.exception("node %d: group %d does not end cleanly", node, seat.group)


def resign(seats: Iterable[Seat], now: Micros, wake: Callable[[Seat], None]) -> None:
    """A sync that hangs leaves every write behind it uncertain: leaders resign."""
    for seat in seats:
        if seat.replica.leading:
            seat.replica.step_down(now)
            wake(seat)


def log_stop(node: NodeId, error: Exception) -> None:
    """Say why a node stops: a store that failed is the machine's fault, all else is ours."""
    if isinstance(error, StoreError):
        log.error("node %d stops: %s", node, error)
    else:
        log.critical("node %d stops, this is a bug of Ottla", node, exc_info=error)
