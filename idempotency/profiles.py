"""Profiles: whose rules a partition follows (docs/reference/rules.md).

A profile is a value: a table of rules and a few named switches. Code asks for the switch it needs
and never for the profile's name. What an accepted or refused sequence is stands in the rules; a
switch is only what a table of decisions cannot say.
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
    """What it is, in one sentence."""
    rules: Rules
    window: int
    """How many finished batches are remembered per producer (KIP-98: 5)."""
    gap_after_barrier: bool
    """Whether a refusal that rests on what this leader may have missed waits for a barrier."""
    epochs_apart: bool = False
    """Whether each epoch of a producer is remembered by itself, under a key of its own, and its
    batches by their last sequence alone (`ottla.idempotency.sessions`)."""
    begun_counts: bool = False
    """Whether what was begun stays begun when it failed, or when its leadership ended. With
    `epochs_apart` only."""
    one_stage: bool = False
    """Whether `enqueued` ends only with the result, so that a connection has one produce request
    under way (`ottla.broker.wire.pipeline`)."""

    @property
    def begins_anywhere(self) -> bool:
        """Whether an unknown producer may begin at any sequence (0012)."""
        return isinstance(self.outcomes[Fact.WELL_FORMED], Accept)

    @cached_property
    def outcomes(self) -> tuple[Outcome, ...]:
        """The rules compiled, when first asked for: what follows from each set of facts, by their
        bits."""
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
