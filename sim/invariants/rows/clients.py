"""The invariants of what clients are told.

Producers are told offsets and errors, consumers records and high watermarks. Most of these rows are
judged at the end, because they compare what was told with the canonical log.
"""

from __future__ import annotations

from ottla.sim.invariants import acks, in_sync, live, reads, waits
from ottla.sim.invariants.invariant import Invariant, Place
from ottla.sim.invariants.visibility import Visibility

CLIENTS: tuple[Invariant, ...] = (
    Invariant(
        "sim-I01",
        "lost acked write",
        "a record acknowledged with acks=all is in the canonical log, or below the log start",
        Place.END,
        acks.lost,
    ),
    Invariant(
        "sim-I06",
        "offset mismatch",
        "a record acknowledged with acks=all is at the offset that its client was told, unless "
        "that is below the log start",
        Place.END,
        acks.moved,
    ),
    Invariant(
        "sim-I07",
        "offset acked twice",
        "no two records are acknowledged at one offset, and no record at two (acks=all)",
        Place.END,
        acks.shared,
    ),
    Invariant(
        "sim-I08",
        "real-time order",
        "a record handed over after another one was acknowledged gets a higher offset (acks=all)",
        Place.END,
        acks.late,
    ),
    Invariant(
        "sim-I09",
        "ack before commit",
        "when a client is told of success with acks=all, some node knows that the record is "
        "committed",
        Place.ONLINE,
        Visibility,
    ),
    Invariant(
        "sim-I10",
        "dirty read",
        "when a consumer gets a record, some node knows that it is committed",
        Place.ONLINE,
        Visibility,
    ),
    Invariant(
        "sim-I11",
        "phantom or truncated read",
        "what a consumer got at an offset is what the canonical log holds there, "
        "unless that is below the log start; and each record of that log was handed to a "
        "client for that partition",
        Place.END,
        reads.phantoms,
    ),
    Invariant(
        "sim-I12",
        "read out of order, or skipped",
        "a consumer gets one offset after the other, from the one that it asked for, except "
        "those the log start had passed",
        Place.END,
        reads.jumps,
    ),
    Invariant(
        "sim-I13",
        "failed, then visible",
        "a record that certainly failed is neither in the canonical log nor read by a consumer",
        Place.END,
        acks.failed,
    ),
    Invariant(
        "sim-I14",
        "unseen at the end",
        "if a consumer got to the end, every acknowledged record after its beginning was "
        "read by some consumer (acks=all)",
        Place.END,
        reads.unseen,
    ),
    Invariant(
        "sim-I28",
        "high watermark goes back",
        "no consumer is told a lower high watermark than before, unless by a leader older than one "
        "it has heard",
        Place.END,
        reads.backwards,
    ),
    Invariant(
        "sim-I31",
        "liveness",
        "some time after the healing every partition is led by a healed node, no client waits, "
        "something was acknowledged if anything was sent, and the healed logs have the same end",
        Place.END,
        live.stuck,
    ),
    Invariant(
        "sim-I32",
        "exactly-once yield",
        "each record that was handed to a client ends at most once, as acknowledged, failed or "
        "unknown, and no other record ends; measured: the share that was acknowledged",
        Place.END,
        acks.ended_twice,
    ),
    Invariant(
        "sim-I33",
        "failover time",
        "measured: the longest time between two acknowledgements with an election between them",
        Place.MEASURED,
        None,
    ),
    Invariant(
        "sim-I43",
        "answer that the in-sync minimum forbids",
        "a batch with acks=all is accepted, refused or held back as replicas in sync demand; no "
        "more are counted; refused before its append it is not in the log, later it is; no reader "
        "sees more than is committed",
        Place.END,
        in_sync.in_sync,
    ),
    Invariant(
        "sim-I44",
        "no answer in time",
        "a node that runs answers each request within the time that it may take, whatever "
        "happens to a leader",
        Place.END,
        waits.late,
    ),
)
