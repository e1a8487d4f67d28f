"""What happened on a cluster since its start, counted where it happens.

One object per cluster, handed to every node and partition, so that the counts outlive the nodes
that are killed and started again.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(slots=True)
class Counters:
    """Plain numbers; only ever rising."""

    batches_received: int = 0
    """Batches that came to a replica of their partition, whatever became of them."""
    duplicates_answered: int = 0
    """Batches that were stored already and got their old offset again."""
    duplicates_parked: int = 0
    """Batches whose original was in flight, and that waited for it."""
    gaps_refused: int = 0
    """Batches refused with OUT_OF_ORDER_SEQUENCE_NUMBER after a barrier."""
    barriers: int = 0
    """Leadership barriers started for a gap."""
    leaderships: int = 0
    """Times a replica of a partition came to lead."""
    step_downs: int = 0
    """Times a leader of a partition stopped leading while its node went on."""

    def as_dict(self) -> dict[str, int]:
        """By name."""
        return asdict(self)
