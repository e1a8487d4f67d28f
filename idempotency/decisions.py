"""What `ProducerTable.decide` answers. Decisions are values; each names the row it comes from.

`Accept` and `Reject` exist once per row and are shared by all requests. `Duplicate` and `Park`
carry data of one request, so they are made for each request.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from ottla.idempotency.producer import InFlight
from ottla.idempotency.rules import RejectReason, Row, Rules, Verdict, compile_rules
from ottla.log.types import Millis, Offset


@dataclass(frozen=True, slots=True)
class Accept:
    """The batch is seen for the first time and is in order: call `begin` for it."""

    row: Row


class Duplicate(NamedTuple):
    """The batch was seen before and is finished: answer with its stored base offset."""

    base_offset: Offset
    max_timestamp: Millis
    """Of the stored batch. Kafka answers a duplicate with it as log_append_time (K-FIELDS)."""
    row: Row


class Park(NamedTuple):
    """The same batch is in flight: call `park`, and answer this request when that one is
    answered."""

    in_flight: InFlight
    row: Row


@dataclass(frozen=True, slots=True)
class Reject:
    """The batch is refused. Nothing is stored and no state has changed."""

    reason: RejectReason
    row: Row
    barrier: bool
    """Answer only after a leadership barrier: a newer leader may have batches that this one
    lacks."""


Decision: TypeAlias = Accept | Duplicate | Park | Reject

Outcome: TypeAlias = Accept | Reject | Row | None
"""A finished decision; a row whose decision still needs data of the request; or None: the facts are
impossible."""


def compile_outcomes(rules: Rules, gap_after_barrier: bool) -> tuple[Outcome, ...]:
    """As `compile_rules`, with each `Accept` and `Reject` already made, once per row."""
    ready: dict[str, Outcome] = {}
    for row in rules:
        if isinstance(row.decision, RejectReason):
            ready[row.label] = Reject(row.decision, row, row.barrier and gap_after_barrier)
        else:
            ready[row.label] = Accept(row) if row.decision is Verdict.ACCEPT else row
    return tuple(row and ready[row.label] for row in compile_rules(rules))
