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
    one_at_a_time: bool = False
    """Whether a connection has at most one request in flight, of any kind (K-FRAME;
    `ottla.broker.wire.pipeline`)."""
    last_twin_counts: bool = False
    """Whether of two batches for one partition in one request the first is dropped without a word.
    Otherwise both are refused (docs/decisions/0025-kafkas-accidents.md)."""
    waits_for_all_in_sync: bool = False
    """Whether the high watermark, and with it acks=all, waits for every replica in sync, and not
    only for a majority (K-WATERMARK; `ottla.broker.partition.showing`)."""
    expires_by_timestamp: bool = False
    """Whether a producer is idle since the largest record time of its last batch, and not since
    that batch was applied (K-EXPIRY; `ottla.broker.partition.expiry`)."""

    @property
    def name(self) -> str:
        """Its full name, as reports print it."""
        return self.rulebook.name
