"""The table of invariants: what must hold of every run, one row each.

A row says what the invariant is, where it is judged and by what; the statement of the same id in
`sql/` says it again for a sweep, and the two agree on every labelled history. The page
`docs/reference/invariants.md` is written from this table.

Judged online: the run can end at the first hit, close to the cause. Judged at the end: what needs
the final logs. What is *measured* judges nothing by itself.
"""

from __future__ import annotations

from ottla.sim.invariants import (
    acks,
    decisions,
    live,
    order,
    reads,
    refusals,
    replicas,
    resent,
    states,
)
from ottla.sim.invariants.checks import Checks
from ottla.sim.invariants.durability import Durability
from ottla.sim.invariants.invariant import Invariant, Place
from ottla.sim.invariants.leadership import Leadership
from ottla.sim.invariants.terms import Terms
from ottla.sim.invariants.visibility import Visibility

_ON, _END = Place.ONLINE, Place.END

INVARIANTS: tuple[Invariant, ...] = (
    Invariant(
        "sim-I01",
        "lost acked write",
        "a record acknowledged with acks=all is in the canonical log, or below the log start",
        _END,
        acks.lost,
    ),
    Invariant(
        "sim-I02",
        "duplicate",
        "within one epoch of one producer no sequence and no value is stored twice, unless the log "
        "forgot the producer in between",
        _END,
        order.duplicates,
    ),
    Invariant(
        "sim-I03",
        "reorder",
        "the records of one producer lie in the log in the order in which its client was "
        "given them (of two copies the first counts), but for those that it left out when the "
        "log had forgotten it",
        _END,
        order.reordered,
    ),
    Invariant(
        "sim-I04",
        "gap accepted",
        "in one epoch of one producer each sequence follows the one before, 2147483647 being "
        "followed by 0, unless the log forgot the producer in between",
        _END,
        order.gaps,
    ),
    Invariant(
        "sim-I05",
        "stale epoch, or a new one that does not begin with 0",
        "epochs of one producer never go back in the log, and a newer one begins with sequence 0, "
        "unless the log forgot the producer in between",
        _END,
        order.epochs,
    ),
    Invariant(
        "sim-I06",
        "offset mismatch",
        "a record acknowledged with acks=all lies at the offset its client was told, unless that "
        "is below the log start",
        _END,
        acks.moved,
    ),
    Invariant(
        "sim-I07",
        "offset acked twice",
        "no two records are acknowledged at one offset, no record at two (acks=all)",
        _END,
        acks.shared,
    ),
    Invariant(
        "sim-I08",
        "real-time order",
        "a record handed over after another one was acknowledged gets a higher offset (acks=all)",
        _END,
        acks.late,
    ),
    Invariant(
        "sim-I09",
        "ack before commit",
        "when a client hears of success with acks=all, some node knows the record committed",
        _ON,
        Visibility,
    ),
    Invariant(
        "sim-I10",
        "dirty read",
        "when a consumer is given a record, some node knows it committed",
        _ON,
        Visibility,
    ),
    Invariant(
        "sim-I11",
        "phantom or truncated read",
        "what a consumer was given at an offset is what the canonical log holds there, "
        "unless that is below the log start; and each record of that log was given to a "
        "client for that partition",
        _END,
        reads.phantoms,
    ),
    Invariant(
        "sim-I12",
        "read out of order, or skipped",
        "a consumer is given one offset after the other, from the one it asked for on, but for "
        "those the log start had passed",
        _END,
        reads.jumps,
    ),
    Invariant(
        "sim-I13",
        "failed, then visible",
        "a record that certainly failed is neither in the canonical log nor given to a consumer",
        _END,
        acks.failed,
    ),
    Invariant(
        "sim-I14",
        "unseen at the end",
        "where a consumer got to the end, every acknowledged record behind its beginning was "
        "given to some consumer (acks=all)",
        _END,
        reads.unseen,
    ),
    Invariant("sim-I15", "two leaders in a term", "a term has one leader", _ON, Terms),
    Invariant(
        "sim-I16",
        "double vote",
        "a node votes for one candidate in a term, for itself if it leads; as long as it "
        "is up each vote that it wrote counts, over restarts each vote that it sent",
        _ON,
        Terms,
    ),
    Invariant(
        "sim-I17",
        "term regression",
        "a node's term never falls while it is up, and after a restart it is never below "
        "a term in which others saw it vote or lead",
        _ON,
        Terms,
    ),
    Invariant(
        "sim-I18",
        "leader append-only",
        "a leader never cuts its own log",
        _ON,
        Durability,
    ),
    Invariant(
        "sim-I19",
        "log matching",
        "entries of one index and term have the same log before them, wherever they are written",
        _ON,
        Durability,
    ),
    Invariant(
        "sim-I20",
        "leader completeness",
        "a new leader's log holds what leaders of lower terms have committed by then",
        _ON,
        Durability,
    ),
    Invariant(
        "sim-I21",
        "state machine safety",
        "whoever applies an index applies the same entry, with the same log before it",
        _ON,
        Durability,
    ),
    Invariant(
        "sim-I22",
        "truncation below commit",
        "a node never cuts an entry that it knows committed, never goes back to a "
        "snapshot before it, and loses no durable entry in a crash",
        _ON,
        Durability,
    ),
    Invariant(
        "sim-I23",
        "commit regression",
        "what a leader commits is never below what was committed in its term or an earlier one",
        _ON,
        Leadership,
    ),
    Invariant(
        "sim-I24",
        "commit without a durable quorum",
        "what is committed is durable on a quorum of nodes at that moment, the same log on each",
        _ON,
        Durability,
    ),
    Invariant(
        "sim-I25",
        "producer state differs from a replay",
        "after the same entry all replays of a log have the same producer state, and each life "
        "applies one entry after the other",
        _END,
        states.replays,
    ),
    Invariant(
        "sim-I26",
        "uncommitted state leaks",
        "a new leader's producer table holds nothing in flight of an earlier leadership",
        _ON,
        Leadership,
    ),
    Invariant(
        "sim-I27",
        "snapshot differs from a replay",
        "a producer state that began with a snapshot equals that of a replay of the log",
        _END,
        states.snapshots,
    ),
    Invariant(
        "sim-I28",
        "high watermark goes back",
        "no consumer is told a lower high watermark than before, unless by a leader older than one "
        "it has heard",
        _END,
        reads.backwards,
    ),
    Invariant(
        "sim-I31",
        "liveness",
        "some time after the healing every partition is led by a healed node, no client waits, "
        "something was acknowledged if anything was asked, and the healed logs end alike",
        _END,
        live.stuck,
    ),
    Invariant(
        "sim-I32",
        "exactly-once yield",
        "each record that was given to a client ends at most once, as acknowledged, failed or "
        "unknown, and no other record ends; measured: the share that was acknowledged",
        _END,
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
        "sim-I34",
        "idempotence strength",
        "no record is stored twice because the broker refused what it had stored already,"
        " nor because a client began anew when a gap was refused rightly, unless "
        "librdkafka's rules say so; other copies are told with their cause",
        _END,
        resent.resent,
    ),
    Invariant(
        "sim-I35",
        "a decision the reference model would not take",
        "what a leader decides about a batch follows from the log before it, as the reference "
        "model reads it (profiles that are modelled)",
        _END,
        decisions.misjudged,
    ),
    Invariant(
        "sim-I36",
        "a gap told that is none",
        "no leader tells a client of a gap if the batch, or what lies before it, was "
        "committed when the leader was asked",
        _END,
        refusals.untrue_gaps,
    ),
    Invariant(
        "sim-I37",
        "replicas hold different records",
        "in the end all logs hold the same record at each committed offset, with the same"
        " producer, epoch and sequence, and none has a hole there",
        _END,
        replicas.differing_copies,
    ),
    Invariant(
        "sim-I38",
        "an answer that Kafka's order of checks does not give",
        "a produce request with several things wrong is answered with what Kafka finds first, "
        "unless the node lacks the topic, the leadership or replicas in sync and says that",
        _ON,
        Checks,
    ),
)

WAITING: dict[str, str] = {
    "sim-I29": "config safety: waits for membership change",
    "sim-I30": "staleness of lease reads: waits for leases",
}
"""Numbers of the catalogue that have no row yet, and why (docs/not-implemented.md)."""

_BY_ID = {row.id: row for row in INVARIANTS}


def invariant(name: str) -> Invariant:
    """The row of that id. Raises LookupError, for one that waits with what it waits for."""
    if name in _BY_ID:
        return _BY_ID[name]
    raise LookupError(f"there is no invariant {name!r}: {WAITING.get(name, 'unknown')}")
