"""`Work`: all producers of a run, as the nemesis and the audit see them."""

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
        """Of everyone who wrote."""
        return [*(writer.ledger for writer in self.writers), self.probe]

    def acked(self) -> dict[tuple[str, int], int]:
        """Records acknowledged so far, by writer and partition."""
        return {
            (writer.ledger.producer, partition): len(lane)
            for writer in self.writers
            for partition, lane in enumerate(writer.ledger.acked)
        }

    def hold(self) -> None:
        """Let all writers rest."""
        for writer in self.writers:
            writer.pace.hold()

    def idle(self) -> bool:
        """Whether all of them rest, with nothing under way."""
        return all(writer.pace.idle.is_set() for writer in self.writers)

    def release(self) -> None:
        """Let them go on."""
        for writer in self.writers:
            writer.pace.release()

    def faults_over(self) -> None:
        """Let them write what is missing, and end."""
        for writer in self.writers:
            writer.pace.faults_over()
