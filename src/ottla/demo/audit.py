"""The checks of the demo: pure functions over plain values, one for each property that must hold.

The evidence has three independent sources: what producers sent and which answers they got
(`Claims`), what a consumer read, and the log in every replica's own store (`LogEntry`). Each check
returns a `Verdict`: what it compared, how much of it, and the violations.

| check | holds when | source |
|---|---|---|
| nothing lost | every acknowledged value is at its acknowledged offset | promise-K4 |
| nothing twice | no value is at two offsets | promise-R2 |
| nothing out of order | each producer's values are in the order of sending | promise-S4 |
| | and so are its sequences, by the rules of `ottla study audit` | promise-S4 |
| nothing unsent | every value was sent, and was not refused for good | promise-S4 |
| replicas agree | committed entries are the same on every replica, byte for byte | Raft, figure 3 |
| consumer agrees | the consumer read what the log holds, offset by offset | promise-K3 |
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ottla.demo.ledger import Ack, place_of
from ottla.demo.settings import TOPIC
from ottla.log.types import Offset
from ottla.raft.types import LogIndex, NodeId, Term
from ottla.sim.studies.audit.ledger import told
from ottla.sim.studies.audit.sequences import Finding

SHOWN = 20
"""Violations that a verdict shows; it counts all of them."""

Records = Mapping[Offset, bytes]
"""The records of one partition: value by offset."""


@dataclass(frozen=True, slots=True)
class LogEntry:
    """A committed entry of one replica; `digest` covers the bytes with their stamp."""

    index: LogIndex
    term: Term
    kind: str
    digest: bytes


class Claims(NamedTuple):
    """One producer's view of one partition."""

    producer: str
    sent: Sequence[bytes]
    """Values in the order of sending."""
    acked: Sequence[Ack]
    refused: Sequence[bytes] = ()
    """Values that the broker refused for good."""


class Verdict(NamedTuple):
    """Outcome of one check."""

    check: str
    compared: str
    """What was compared, with numbers."""
    violations: int
    shown: Sequence[str] = ()
    """The first violations, in words."""

    @property
    def passed(self) -> bool:
        """Whether the check found no violation."""
        return self.violations == 0


def lost(log: Records, claims: Iterable[Claims]) -> list[Ack]:
    """Acknowledged records that are not at their acknowledged offset."""
    return [
        ack
        for claim in claims
        for ack in claim.acked
        if ack.offset is None or log.get(ack.offset) != ack.value
    ]


def unreadable(consumed: Iterable[tuple[Offset, bytes]], claims: Iterable[Claims]) -> list[Ack]:
    """Acknowledged records that the consumer did not find: lost messages (promise-K4)."""
    read = frozenset(value for _, value in consumed)
    return [ack for claim in claims for ack in claim.acked if ack.value not in read]


def twice(log: Records) -> dict[bytes, list[Offset]]:
    """Values that are at more than one offset."""
    first: dict[bytes, Offset] = {}
    found: dict[bytes, list[Offset]] = {}
    for offset, value in log.items():
        if value in first:
            found.setdefault(value, [first[value]]).append(offset)
        else:
            first[value] = offset
    return found


def disordered(log: Records, sent: Sequence[bytes]) -> list[tuple[Offset, bytes]]:
    """Records of one producer that come after a record that it sent later. A repetition alone does
    not count; `twice` finds those."""
    position = {value: number for number, value in enumerate(sent)}
    latest = -1
    found = []
    for offset in sorted(log):
        number = position.get(log[offset])
        if number is None:
            continue
        if number < latest:
            found.append((offset, log[offset]))
        latest = max(latest, number)
    return found


def unsent(log: Records, claims: Iterable[Claims]) -> list[tuple[Offset, bytes]]:
    """Records that no producer sent, or that were refused for good."""
    allowed: set[bytes] = set()
    for claim in claims:
        allowed.update(claim.sent)
        allowed.difference_update(claim.refused)
    return [(offset, value) for offset, value in sorted(log.items()) if value not in allowed]


def divergences(replicas: Mapping[NodeId, Sequence[LogEntry]]) -> list[str]:
    """Places where replicas of one partition have different committed entries, or not as many."""
    nodes = sorted(replicas)
    first = nodes[0]
    found = []
    for node in nodes[1:]:
        mine, theirs = replicas[first], replicas[node]
        if len(mine) != len(theirs):
            found.append(f"node {first} has {len(mine)} entries, node {node} {len(theirs)}")
        found.extend(
            f"index {a.index}: node {first} has term {a.term} {a.kind} {a.digest.hex()}, "
            f"node {node} term {b.term} {b.kind} {b.digest.hex()}"
            for a, b in zip(mine, theirs, strict=False)
            if a != b
        )
    return found


def misread(log: Records, consumed: Sequence[tuple[Offset, bytes]]) -> list[str]:
    """Places where the consumer read something else than the log has, or in another order."""
    found = []
    seen: dict[Offset, bytes] = {}
    last = -1
    for offset, value in consumed:
        if offset <= last:
            found.append(f"offset {offset} was read after {last}")
        last = max(last, offset)
        seen[offset] = value
    found.extend(
        f"offset {offset}: log {_named(log, offset)}, read {_named(seen, offset)}"
        for offset in sorted(log.keys() | seen.keys())
        if log.get(offset) != seen.get(offset)
    )
    return found


def _named(records: Records, offset: Offset) -> str:
    value = records.get(offset)
    return "nothing" if value is None else place_of(value)


# --- verdicts -------------------------------------------------------------------------------------


class Evidence(NamedTuple):
    """All evidence about one partition."""

    partition: int
    claims: Sequence[Claims]
    log: Records
    """Decoded from the leader's own store."""
    replicas: Mapping[NodeId, Sequence[LogEntry]]
    consumed: Sequence[tuple[Offset, bytes]]
    findings: Sequence[Finding] = ()
    """What `ottla study audit` would find in the sequences of the log."""


def verdict(check: str, compared: str, violations: Sequence[str]) -> Verdict:
    """A verdict with the first `SHOWN` violations."""
    return Verdict(check, compared, len(violations), tuple(violations[:SHOWN]))


def lost_messages(evidence: Sequence[Evidence]) -> list[tuple[int, Ack]]:
    """Every acknowledged record that no consumer can read, with its partition."""
    return [
        (each.partition, ack) for each in evidence for ack in unreadable(each.consumed, each.claims)
    ]


def examine(evidence: Sequence[Evidence], *, idempotent: bool) -> list[Verdict]:
    """The verdicts of all checks that apply to these producers.

    Plain producers promise neither order nor uniqueness, and `losses` explains what they lost. For
    them only those properties are checked that every log has.
    """
    verdicts = []
    if idempotent:
        verdicts = [_nothing_lost(evidence), _nothing_twice(evidence), _in_order(evidence)]
    return [*verdicts, _nothing_unsent(evidence), _replicas(evidence), _consumer(evidence)]


def _nothing_lost(evidence: Sequence[Evidence]) -> Verdict:
    acked = sum(len(claim.acked) for each in evidence for claim in each.claims)
    return verdict(
        "Nothing acknowledged is lost",
        f"{acked:,} acknowledged values, each looked up in the log at its acknowledged offset",
        [
            f"partition {each.partition}, offset {ack.offset}: {place_of(ack.value)} is not there"
            for each in evidence
            for ack in lost(each.log, each.claims)
        ],
    )


def _nothing_twice(evidence: Sequence[Evidence]) -> Verdict:
    return verdict(
        "Nothing is stored twice",
        f"{_stored(evidence):,} stored values, all different",
        [
            f"partition {each.partition}: {place_of(value)} lies at offsets {offsets}"
            for each in evidence
            for value, offsets in twice(each.log).items()
        ],
    )


def _in_order(evidence: Sequence[Evidence]) -> Verdict:
    lanes = [(each, claim) for each in evidence for claim in each.claims if claim.sent]
    return verdict(
        "Nothing is out of order",
        f"{len(lanes)} sequences (producer and partition), in the order in which they were sent",
        [
            f"partition {each.partition}, offset {offset}: {place_of(value)} is too late"
            for each, claim in lanes
            for offset, value in disordered(each.log, claim.sent)
        ]
        + [told(TOPIC, each.partition, found) for each in evidence for found in each.findings],
    )


def _nothing_unsent(evidence: Sequence[Evidence]) -> Verdict:
    refused = sum(len(claim.refused) for each in evidence for claim in each.claims)
    return verdict(
        "Nothing was stored that nobody sent",
        f"{_stored(evidence):,} stored values; {refused} refused for good are not among them",
        [
            f"partition {each.partition}, offset {offset}: {place_of(value)}"
            for each in evidence
            for offset, value in unsent(each.log, each.claims)
        ],
    )


def _replicas(evidence: Sequence[Evidence]) -> Verdict:
    entries = sum(len(log) for each in evidence for log in each.replicas.values())
    logs = sum(len(each.replicas) for each in evidence)
    return verdict(
        "All replicas hold the same log",
        f"{entries:,} committed entries in {logs} stores: index, term, kind and bytes",
        [
            f"partition {each.partition}, {where}"
            for each in evidence
            for where in divergences(each.replicas)
        ],
    )


def _consumer(evidence: Sequence[Evidence]) -> Verdict:
    read = sum(len(each.consumed) for each in evidence)
    return verdict(
        "The consumer read what the log holds",
        f"{read:,} records read by a consumer, compared offset by offset",
        [
            f"partition {each.partition}, {where}"
            for each in evidence
            for where in misread(each.log, each.consumed)
        ],
    )


def _stored(evidence: Sequence[Evidence]) -> int:
    return sum(len(each.log) for each in evidence)
