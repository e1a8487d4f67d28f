"""`Showing`: how far readers see the log, and how far requests with acks=all are answered.

**Theory.** An entry is *committed* when a majority has it. Readers may have to wait for more, and
then the high watermark is *held* (`held`):

* Fewer replicas are in sync than `min.insync.replicas` requires (K-WATERMARK,
  docs/decisions/0014-high-watermark-below-the-minimum.md).
* The profile lets acks=all wait for all replicas in sync, as Kafka does
  (`Profile.waits_for_all_in_sync`), and one of them lacks the entry (`PatientShowing`). Then the
  high watermark is the least log end of the replicas in sync, but nothing that is not committed. A
  request with acks=all, and a copy of one, is answered when the high watermark has passed it. It is
  never answered with NOT_ENOUGH_REPLICAS_AFTER_APPEND: below the minimum it waits until its time is
  up (K-ACKS). It goes on as soon as the replica that lacks the entry falls out of sync.

Only a leader holds anything back, and only its own entries. It looks again after each progress of a
follower, with each request, and when a replica may fall out of sync.
"""

from __future__ import annotations

from ottla.broker.partition.purgatory import Purgatory
from ottla.broker.partition.reads import Reads
from ottla.broker.partition.state import PartitionState
from ottla.raft.types import LogIndex, Micros


class Showing:
    """See the module's docstring. One per partition."""

    __slots__ = ("_purgatory", "_reads", "_state", "held")

    def __init__(self, state: PartitionState, purgatory: Purgatory, reads: Reads):
        self.held = False
        """Whether the high watermark stands still although more is committed."""
        self._state = state
        self._purgatory = purgatory
        self._reads = reads

    def lacks(self, last: LogIndex, now: Micros) -> bool:
        """Whether readers have to wait for a replica before they see all up to entry `last`."""
        state = self._state
        return state.in_sync.below_minimum(state.settings.min_insync_replicas, now)

    def show(self, enough: bool, now: Micros) -> None:
        """If `enough` replicas have what is applied, let readers see it. Else hold the high
        watermark where it is."""
        self.held = not enough
        self._state.leadership.notice_followers(None if enough else self.look_again)
        if enough:
            self._show_upto(self._state.applied)

    def _show_upto(self, index: LogIndex) -> None:
        state = self._state
        state.shown = index
        state.high_watermark = state.index.end_offset(index)

    def look_again(self, now: Micros) -> None:
        """A follower advanced, or somebody asks: enough replicas may have everything now."""
        if not self.lacks(self._state.applied, now):
            self.show(enough=True, now=now)
            self._reads.moved()

    def tick(self, now: Micros) -> None:
        """Time has passed: a replica may have fallen out of sync."""

    def falls_out(self, now: Micros) -> Micros | None:
        """When to look again, because a replica may fall out of sync then. None: that would change
        nothing."""
        return None


class PatientShowing(Showing):
    """As `Showing`, but readers and acks=all wait for every replica in sync."""

    def lacks(self, last: LogIndex, now: Micros) -> bool:
        """As `Showing.lacks`."""
        return super().lacks(last, now) or self._state.in_sync.everywhere(now) < last

    def show(self, enough: bool, now: Micros) -> None:
        """As `Showing.show`, but if the minimum is in sync, readers see what all of them have."""
        super().show(enough, now)
        state = self._state
        if not enough and not state.below_minimum(now):
            everywhere = min(state.applied, state.in_sync.everywhere(now))
            # Nothing that a snapshot has replaced is left to be held.
            self._show_upto(max(state.shown, everywhere, state.index.first_index - 1))

    def look_again(self, now: Micros) -> None:
        """As `Showing.look_again`; some of what is held may be shown."""
        self.show(not self.lacks(self._state.applied, now), now)
        self._reads.moved()
        self._purgatory.settle(self._state.shown, enough=True)

    def tick(self, now: Micros) -> None:
        """As `Showing.tick`."""
        if self.held:
            self.look_again(now)

    def falls_out(self, now: Micros) -> Micros | None:
        """As `Showing.falls_out`."""
        return self._state.in_sync.falls_out(now) if self.held else None


def make_showing(state: PartitionState, purgatory: Purgatory, reads: Reads) -> Showing:
    """What the partition's profile needs."""
    patient = state.settings.profile.waits_for_all_in_sync
    return (PatientShowing if patient else Showing)(state, purgatory, reads)
