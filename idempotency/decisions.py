"""What `ProducerTable.decide` answers. Decisions are values; each names the row it comes from.

`Accept` and `Reject` exist once per row and are handed out again and again; only the two that
carry something of the request's own are made for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from ottla.idempotency.producer import InFlight
from ottla.idempotency.rules import RejectReason, Row, Rules, Verdict, compile_rules
from ottla.log.types import Millis, Offset


@dataclass(frozen=True, slots=True)
class Accept:
    """First seen and in order: `begin` it."""

    row: Row


class Duplicate(NamedTuple):
    """Seen and finished: answer with where it lies."""

    base_offset: Offset
    max_timestamp: Millis
    """Kafka answers a duplicate with it as log_append_time (K-FIELDS)."""
    row: Row


class Park(NamedTuple):
    """The same batch is in flight: `park` on it, answer when it is."""

    in_flight: InFlight
    row: Row


@dataclass(frozen=True, slots=True)
class Reject:
    """Refused; nothing is stored and no state has changed."""

    reason: RejectReason
    row: Row
    barrier: bool
    """Answer only after a leadership barrier: this leader may have missed what is missing."""


Decision: TypeAlias = Accept | Duplicate | Park | Reject

Outcome: TypeAlias = Accept | Reject | Row | None
"""A decision ready to hand out, a row that lacks the request's own part, or impossible facts."""


def compile_outcomes(rules: Rules, gap_after_barrier: bool) -> tuple[Outcome, ...]:
    """`compile_rules`, with every decision that can be made beforehand made, once per row."""
    ready: dict[str, Outcome] = {}
    for row in rules:
        if isinstance(row.decision, RejectReason):
            ready[row.label] = Reject(row.decision, row, row.barrier and gap_after_barrier)
        else:
            ready[row.label] = Accept(row) if row.decision is Verdict.ACCEPT else row
    return tuple(row and ready[row.label] for row in compile_rules(rules))
