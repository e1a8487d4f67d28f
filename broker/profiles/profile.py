"""`Profile`: whose behaviour a cluster shows, as one value.

A profile composes the rules for idempotent producers (`ottla.idempotency.rulebooks`) with switches
of other rooms. Code asks for the switch that it needs, never for the profile's name.
"""

from __future__ import annotations

from dataclasses import dataclass

from ottla.idempotency.rulebooks import Rulebook


@dataclass(frozen=True, kw_only=True)
class Profile:
    """A broker's behaviour; docs/reference/profiles.md says what each promises."""

    summary: str
    """The profile in one sentence."""
    rulebook: Rulebook
    """What is decided about the batches of idempotent producers."""
    one_stage: bool = False
    """Whether the stage `enqueued` ends only with the result, so that a connection has at most one
    produce request in flight (`ottla.broker.wire.pipeline`)."""

    @property
    def name(self) -> str:
        """Its full name, as reports print it."""
        return self.rulebook.name
