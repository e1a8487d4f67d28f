"""What a run of the demo is asked to do: one frozen value."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

TOPIC = "demo"
PARTITIONS = 3
NODES = 3
MIN_LEADER_FAULTS = 6
SECONDS_PER_FAULT = 1.25
"""What a leader fault takes: an election, the return of the old leader, a moment of health."""
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
    """Under `reference`, as under Kafka 4.3.1, a fresh producer's first batch can get lost behind
    its second (docs/decisions/0012-unknown-producers.md); the demo claims that nothing does."""
    out: Path = Path("out")

    @property
    def wire_acks(self) -> Literal[-1, 0, 1]:
        """acks as the protocol has it."""
        if self.acks == "all":
            return -1
        return 1 if self.acks == "1" else 0

    @property
    def idempotent(self) -> bool:
        """Whether the producers carry sequence numbers."""
        return self.acks == "all"

    @property
    def leader_faults(self) -> int:
        """How many times a leader is made to fail."""
        return max(MIN_LEADER_FAULTS, round(self.seconds / SECONDS_PER_FAULT))
