"""Profiles: whose rules a partition follows (design.md, section 4).

A profile is a value: a table of rules and a few named switches. Code asks for the switch it needs
and never for the profile's name. What an accepted or refused sequence is stands in the rules; a
switch is only what a table of decisions cannot say.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ottla.idempotency.decisions import Outcome, compile_outcomes
from ottla.idempotency.errors import UnknownProfileError
from ottla.idempotency.rules import REFERENCE, Rules


@dataclass(frozen=True, slots=True)
class Profile:
    """A broker's behaviour towards idempotent producers."""

    name: str
    summary: str
    """What it is, in one sentence."""
    rules: Rules
    window: int
    """How many finished batches are remembered per producer (KIP-98: 5)."""
    park_holds_mutex: bool
    """Whether a parked duplicate keeps its producer's mutex until the original resolves."""
    gap_after_barrier: bool
    """Whether a refusal that rests on what this leader may have missed waits for a barrier."""
    outcomes: tuple[Outcome, ...] = field(init=False, repr=False, compare=False)
    """The rules compiled: what follows from each set of facts, by their bits."""

    def __post_init__(self) -> None:
        compiled = compile_outcomes(self.rules, self.gap_after_barrier)
        object.__setattr__(self, "outcomes", compiled)


PROFILES: tuple[Profile, ...] = (
    Profile(
        name="reference",
        summary="The algorithm of Redpanda's pull request 5157 with Kafka's answers on the wire.",
        rules=REFERENCE,
        window=5,
        park_holds_mutex=False,
        gap_after_barrier=True,
    ),
)
"""Every profile there is."""


def profile_named(name: str) -> Profile:
    """The profile of that name. Raises UnknownProfileError, which lists those that exist."""
    for profile in PROFILES:
        if profile.name == name:
            return profile
    names = ", ".join(profile.name for profile in PROFILES)
    raise UnknownProfileError(f"there is no profile {name!r}; there are: {names}")
