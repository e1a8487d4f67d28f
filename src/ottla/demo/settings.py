"""The settings of a run of the demo: one frozen value."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

TOPIC = "demo"
PARTITIONS = 3
NODES = 3
MIN_LEADER_FAULTS = 6
SECONDS_PER_FAULT = 1.25
"""Seconds for a leader fault: an election, the return of the old leader, a moment of health."""
PROBE = "raw"
"""The producer that misbehaves on purpose, by name."""


@dataclass(frozen=True, slots=True)
class DemoSettings:
    """`acks` as a producer's setting; `seconds` is the time over which writing is spread."""

    acks: str = "all"
    records: int = 120_000
    seconds: float = 15.0
    seed: int = 1
    profile: str = "reference-strict"
    """Not `reference`: there, as in Kafka 4.3.1, the first batch of a new producer can get lost
    behind its second (docs/decisions/0012-unknown-producers.md). The demo must lose nothing."""
    out: Path = Path("out")

    @property
    def wire_acks(self) -> Literal[-1, 0, 1]:
        """acks as a number of Kafka's protocol."""
        if self.acks == "all":
            return -1
        return 1 if self.acks == "1" else 0

    @property
    def idempotent(self) -> bool:
        """Whether the producers carry sequence numbers."""
        return self.acks == "all"

    @property
    def leader_faults(self) -> int:
        """How many times a fault hits a leader."""
        return max(MIN_LEADER_FAULTS, round(self.seconds / SECONDS_PER_FAULT))
