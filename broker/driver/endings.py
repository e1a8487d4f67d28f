"""The end of leaderships, replicas and nodes: their last answers, and messages in the log."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator

from ottla.broker.driver.hosted import HostedReplica
from ottla.broker.turn.tickets import answer, not_stored
from ottla.log.errors import StoreError
from ottla.raft.types import Micros, NodeId

log = logging.getLogger("ottla")


def close_replica(
    hosted: HostedReplica, node: NodeId, now: Micros, failed: Exception | None
) -> None:
    """Close a replica and answer its open tickets. The replica may be broken, so an exception is
    only logged. `failed`: the error for which the node stops; after a `StoreError` no batch is
    answered as stored."""
    try:
        waiting = hosted.replica.close(now)
        answer(not_stored(waiting) if isinstance(failed, StoreError) else waiting, node)
    except Exception:
        log.exception("node %d: group %d does not end cleanly", node, hosted.group)


def resign(hosted_replicas: Iterable[HostedReplica], now: Micros) -> Iterator[HostedReplica]:
    """A sync hangs, so the outcome of all writes that wait for it is uncertain: all leaders resign.
    Yields the replicas that did; each needs a turn."""
    for hosted in hosted_replicas:
        if hosted.replica.leading:
            hosted.replica.step_down(now)
            yield hosted


def log_stop(node: NodeId, error: Exception) -> None:
    """Log why a node stops. A failed store is the machine's fault, everything else a bug of
    ours."""
    if isinstance(error, StoreError):
        log.error("node %d stops: %s", node, error)
    else:
        log.critical("node %d stops, this is a bug of Ottla", node, exc_info=error)
