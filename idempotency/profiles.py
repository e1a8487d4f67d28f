"""Profiles: whose rules a partition follows (docs/reference/rules.md).

A profile is a value: a table of rules and a few named switches. Code asks for the switch it needs,
never for the profile's name. The rules say which sequences are accepted and which are refused. A
switch exists only for behaviour that a table of decisions cannot express.
"""

from __future__ import annotations

import reprlib
from dataclasses import dataclass
from functools import cached_property

from ottla.idempotency.decisions import Accept, Outcome, compile_outcomes
from ottla.idempotency.errors import UnknownProfileError
from ottla.idempotency.rules import REFERENCE, REFERENCE_STRICT, Fact, Rules
from ottla.idempotency.rules_redpanda import REDPANDA_22_1_3, REDPANDA_5157


@dataclass(frozen=True)
class Profile:
    """A broker's behaviour towards idempotent producers."""

    name: str
    summary: str
    """The profile in one sentence."""
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
    one_stage: bool = False
    """Whether the stage `enqueued` ends only with the result, so that a connection has at most one
    produce request in flight (`ottla.broker.wire.pipeline`)."""

    @property
    def begins_anywhere(self) -> bool:
        """Whether an unknown producer may begin at any sequence (0012)."""
        return isinstance(self.outcomes[Fact.WELL_FORMED], Accept)

    @cached_property
    def outcomes(self) -> tuple[Outcome, ...]:
        """The outcome of each set of facts; the index is the bits of the facts. The rules are
        compiled when this is first read."""
        return compile_outcomes(self.rules, self.gap_after_barrier)


PROFILES: tuple[Profile, ...] = (
    Profile(
        name="reference",
        summary="The algorithm of Redpanda's pull request 5157 with Kafka's answers on the wire.",
        rules=REFERENCE,
        window=5,
        gap_after_barrier=True,
    ),
    Profile(
        name="reference-strict",
        summary="As `reference`, but an unknown producer begins at 0 or where it was forgotten.",
        rules=REFERENCE_STRICT,
        window=5,
        gap_after_barrier=True,
    ),
    Profile(
        name="redpanda-5157",
        summary="Redpanda's pull request 5157 as merged in June 2022: v22.1.5 and v22.2.1.",
        rules=REDPANDA_5157,
        window=5,
        gap_after_barrier=False,
        epochs_apart=True,
    ),
    Profile(
        name="redpanda-22.1.3",
        summary="Redpanda v22.1.1 to v22.1.4, before that fix: one batch per connection in Raft.",
        rules=REDPANDA_22_1_3,
        window=5,
        gap_after_barrier=False,
        epochs_apart=True,
        begun_counts=True,
        one_stage=True,
    ),
)
"""Every profile there is."""


def profile_named(name: str) -> Profile:
    """The profile of that name. Raises UnknownProfileError, which lists those that exist."""
    for profile in PROFILES:
        if profile.name == name:
            return profile
    names = ", ".join(profile.name for profile in PROFILES)
    raise UnknownProfileError(f"there is no profile {reprlib.repr(name)}; there are: {names}")
