"""How leaderships, replicas and nodes end: what is answered, and what the log says."""

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
    """No turns any more: answer who waits, as well as a replica that may be broken can. `failed`:
    why its node stops by itself; behind a store's error nothing may be called done."""
    try:
        waiting = hosted.replica.close(now)
        answer(not_stored(waiting) if isinstance(failed, StoreError) else waiting, node)
    except Exception:
        log.exception("node %d: group %d does not end cleanly", node, hosted.group)


def resign(hosted_replicas: Iterable[HostedReplica], now: Micros) -> Iterator[HostedReplica]:
    """A sync that hangs leaves every write behind it uncertain: leaders resign. Yields those that
    did; each needs a turn."""
    for hosted in hosted_replicas:
        if hosted.replica.leading:
            hosted.replica.step_down(now)
            yield hosted


def log_stop(node: NodeId, error: Exception) -> None:
    """Say why a node stops: a store that failed is the machine's fault, all else is ours."""
    if isinstance(error, StoreError):
        log.error("node %d stops: %s", node, error)
    else:
        log.critical("node %d stops, this is a bug of Ottla", node, exc_info=error)
