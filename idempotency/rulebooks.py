"""Rulebooks: whose rules a partition's producer table follows (docs/reference/rules.md).

A rulebook is a value: a table of rules and a few named switches. Code asks for the switch it needs,
never for the rulebook's name. The rules say which sequences are accepted and which are refused. A
switch exists only for behaviour that a table of decisions cannot express. What else a profile of
the broker says is in `ottla.broker.profiles`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from ottla.idempotency.decisions import Accept, Outcome, compile_outcomes
from ottla.idempotency.rules import REFERENCE, REFERENCE_STRICT, Fact, Rules
from ottla.idempotency.rules_kafka import KAFKA_2_4, KAFKA_4_3
from ottla.idempotency.rules_producer_state import REDPANDA_24_3, REDPANDA_25_3
from ottla.idempotency.rules_redpanda import REDPANDA_22_1_3, REDPANDA_5157


@dataclass(frozen=True)
class Rulebook:
    """A broker's behaviour towards idempotent producers."""

    name: str
    """That of the profile it belongs to."""
    rules: Rules
    window: int
    """How many finished batches are remembered per producer (KIP-98: 5)."""
    gap_after_barrier: bool
    """Whether a leader confirms its leadership by a barrier before it answers a refusal of a row
    with `barrier`."""
    epochs_apart: bool = False
    """Whether each epoch of a producer has its own state, under its own key, and a batch is known
    by its last sequence alone (`ottla.idempotency.sessions`)."""
    begun_counts: bool = False
    """Whether a batch that was begun still counts as begun after it failed or after its leadership
    ended. Only with `epochs_apart`."""
    appended_counts: bool = False
    """Whether `window` counts batches from their append on, so that one in flight takes the place
    of an older one (`ottla.idempotency.appended`)."""
    epoch_minus_one_ordered: bool = False
    """With `appended_counts`: whether batches of epoch -1 have an order, too; otherwise any of them
    is the next one (`ottla.idempotency.appended`)."""
    newer_epoch_wipes: bool = False
    """Whether a batch of a newer epoch wipes what this replica knows of its producer, before it is
    judged and even if it is refused then; epochs are not compared otherwise
    (`ottla.idempotency.wiping`). And a refusal stands once the barrier is passed; otherwise the
    batch is judged again (`ottla.broker.partition.holding`)."""

    @property
    def begins_anywhere(self) -> bool:
        """Whether an unknown producer may begin at any sequence (0012)."""
        return isinstance(self.outcomes[Fact.WELL_FORMED], Accept)

    @cached_property
    def outcomes(self) -> tuple[Outcome, ...]:
        """The outcome of each set of facts; the index is the bits of the facts. The rules are
        compiled when this is first read."""
        return compile_outcomes(self.rules, self.gap_after_barrier)


_REDPANDA_25_3 = Rulebook(
    name="redpanda-25.3",
    rules=REDPANDA_25_3,
    window=5,
    gap_after_barrier=True,
    newer_epoch_wipes=True,
)

_KAFKA_4_3 = Rulebook(
    name="kafka-4.3",
    rules=KAFKA_4_3,
    window=5,
    gap_after_barrier=False,
    appended_counts=True,
)

_ALL = (
    Rulebook(
        name="reference",
        rules=REFERENCE,
        window=5,
        gap_after_barrier=True,
    ),
    Rulebook(
        name="reference-strict",
        rules=REFERENCE_STRICT,
        window=5,
        gap_after_barrier=True,
    ),
    _KAFKA_4_3,
    replace(_KAFKA_4_3, name="kafka-3.9"),
    replace(_KAFKA_4_3, name="kafka-2.8"),
    replace(_KAFKA_4_3, name="kafka-2.4", rules=KAFKA_2_4, epoch_minus_one_ordered=True),
    _REDPANDA_25_3,
    replace(_REDPANDA_25_3, name="redpanda-24.3", rules=REDPANDA_24_3),
    Rulebook(
        name="redpanda-5157",
        rules=REDPANDA_5157,
        window=5,
        gap_after_barrier=False,
        epochs_apart=True,
    ),
    Rulebook(
        name="redpanda-22.1.3",
        rules=REDPANDA_22_1_3,
        window=5,
        gap_after_barrier=False,
        epochs_apart=True,
        begun_counts=True,
    ),
)

RULEBOOKS: dict[str, Rulebook] = {each.name: each for each in _ALL}
"""Every rulebook there is, by name."""
