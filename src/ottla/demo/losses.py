"""Explains lost records: which leader acknowledged each, and whose log replaced it. Pure.

A record is lost if its producer got a success and no consumer can read it (promise-K4). With acks=1
or acks=0, only the leader has stored the record when it answers. Explanations are found, not
guessed: when a deposed leader truncates its log, the event has the dropped entries with their
bytes. So the lost record itself is recognised there, with the term of the leader that appended it
and the term of the leader whose log replaced it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ottla.demo.ledger import Ack
from ottla.log.types import Offset
from ottla.raft.types import LogIndex, Micros, NodeId, Term


@dataclass(frozen=True, slots=True)
class Dropped:
    """A record that a truncation removed from one node's log."""

    at: Micros
    partition: int
    node: NodeId
    """The node whose log lost it."""
    value: bytes
    offset: Offset
    index: LogIndex
    term: Term
    """Term of the leader that had appended it."""
    new_leader: NodeId
    new_term: Term
    """The leader whose log replaced it."""


class Loss(NamedTuple):
    """A lost record; `dropped` is None when nothing explains it."""

    partition: int
    ack: Ack
    dropped: Dropped | None

    @property
    def explained(self) -> bool:
        """Whether a truncation explains the loss."""
        return self.dropped is not None


class LossGroup(NamedTuple):
    """Lost records of one truncation."""

    at: Micros
    partition: int
    node: NodeId
    term: Term
    new_leader: NodeId
    new_term: Term
    indexes: tuple[LogIndex, LogIndex]
    offsets: tuple[Offset, Offset]
    records: int


def explain(lost: Iterable[tuple[int, Ack]], dropped: Iterable[Dropped]) -> list[Loss]:
    """Find each lost record among the dropped ones: same partition, value, and acknowledged offset.

    With acks=0 no offset was acknowledged, and only the value is compared.
    """
    by_place: dict[tuple[int, bytes], list[Dropped]] = {}
    for each in dropped:
        by_place.setdefault((each.partition, each.value), []).append(each)
    return [
        Loss(partition, ack, _match(ack, by_place.get((partition, ack.value), ())))
        for partition, ack in lost
    ]


def _match(ack: Ack, candidates: Sequence[Dropped]) -> Dropped | None:
    for each in candidates:
        if ack.offset is None or ack.offset == each.offset:
            return each
    return None


def groups(losses: Iterable[Loss]) -> list[LossGroup]:
    """Explained losses by the truncation that caused them, in order of time."""
    found: dict[tuple[Micros, int, NodeId], list[Dropped]] = {}
    for loss in losses:
        if loss.dropped is not None:
            each = loss.dropped
            found.setdefault((each.at, each.partition, each.node), []).append(each)
    return [_group(each) for _, each in sorted(found.items())]


def _group(members: list[Dropped]) -> LossGroup:
    first = members[0]
    indexes = [each.index for each in members]
    offsets = [each.offset for each in members]
    return LossGroup(
        first.at,
        first.partition,
        first.node,
        first.term,
        first.new_leader,
        first.new_term,
        (min(indexes), max(indexes)),
        (min(offsets), max(offsets)),
        len(members),
    )


def told(group: LossGroup) -> str:
    """An explanation in words."""
    first, last = group.offsets
    low, high = group.indexes
    return (
        f"partition {group.partition}: {group.records:,} records at offsets {first} to {last} were "
        f"appended by node {group.node}, leader of term {group.term}, as its entries {low} to "
        f"{high}; the log of node {group.new_leader}, leader of term {group.new_term}, replaced "
        f"them"
    )
