"""`Work`: all producers of a run, for the nemesis and the audit."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.demo.ledger import Ledger
from ottla.demo.producers import Writer
from ottla.demo.settings import PARTITIONS, PROBE


class Work:
    """The two writers, and the ledger of the raw producer that misbehaves on purpose."""

    def __init__(self, writers: Sequence[Writer]):
        self.writers = list(writers)
        self.probe = Ledger(PROBE, PARTITIONS)

    @property
    def ledgers(self) -> list[Ledger]:
        """The ledgers of all producers."""
        return [*(writer.ledger for writer in self.writers), self.probe]

    def acked(self) -> dict[tuple[str, int], int]:
        """Records acknowledged so far, by writer and partition."""
        return {
            (writer.ledger.producer, partition): len(lane)
            for writer in self.writers
            for partition, lane in enumerate(writer.ledger.acked)
        }

    def hold(self) -> None:
        """Make all writers rest."""
        for writer in self.writers:
            writer.pace.hold()

    def idle(self) -> bool:
        """Whether all writers rest, with no record in flight."""
        return all(writer.pace.idle.is_set() for writer in self.writers)

    def release(self) -> None:
        """Let the writers go on."""
        for writer in self.writers:
            writer.pace.release()

    def faults_over(self) -> None:
        """Let the writers write what is missing, and end."""
        for writer in self.writers:
            writer.pace.faults_over()
