"""`Remnants`: states of replicas that began with a snapshot and must not keep all of it.

Usually the producer state of a replica follows from the log alone, however it came about, and the
judge compares all states of one place in the log (sim-I25, sim-I27). In some profiles a snapshot
loses producers (`Profile.installs_no_producers`). Then the state that such a replica must have is
computed from what it must keep and from the entries behind that. If it is right, its row has the
hash of the whole state there, so that the judge sees no difference; if it is wrong, its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from ottla.raft.types import Entry, GroupId, LogIndex, NodeId
from ottla.sim.world.life import Life
from ottla.sim.world.one_state_model import Remnant, StateReplay
from ottla.sim.world.reference_model import MODELLED, Replay

_Owner: TypeAlias = tuple[NodeId, int, GroupId]
_Place: TypeAlias = tuple[GroupId, LogIndex]


class Remnants:
    """See the module's docstring. Empty where snapshots lose nothing."""

    def __init__(self) -> None:
        self._left: dict[_Owner, Remnant] = {}
        """By node, life and group."""
        self._whole: dict[_Place, int] = {}
        """The hash of the whole state after an entry."""
        self._right: dict[_Place, set[int]] = {}
        """The hashes of what a replica must have after an entry."""

    def add(self, life: Life, group: GroupId, remnant: Remnant) -> None:
        """The replica begins with that."""
        self._left[life.node_id, life.inc, group] = remnant
        self._note(group, remnant)

    def applied(self, life: Life, group: GroupId, entries: Sequence[Entry]) -> None:
        """The replica applies these entries."""
        remnant = self._left.get((life.node_id, life.inc, group))
        if remnant is not None:
            for entry in entries:
                remnant.applies((entry,))
                self._note(group, remnant)

    def replay(self, group: GroupId, replay: Replay, entries: Sequence[Entry]) -> None:
        """Replay entries of the whole log. If there may be remnants, keep the hash after each."""
        if not isinstance(replay, StateReplay):
            replay.applies(entries)
            return
        for entry in entries:
            if entry.index == replay.applied + 1:
                replay.applies((entry,))
                self._whole[group, entry.index] = replay.digest()

    def _note(self, group: GroupId, remnant: Remnant) -> None:
        self._right.setdefault((group, remnant.applied), set()).add(remnant.digest())

    def told(self, group: GroupId, index: LogIndex, own: int, life: Life | None = None) -> int:
        """What to tell of a state after entry `index` whose hash is `own`. `life`: whose it is, if
        that is known. If it has a remnant, the whole state is wrong."""
        right, whole = self._right.get((group, index), ()), self._whole.get((group, index), own)
        if life is None:
            return whole if own in right else own
        if (life.node_id, life.inc, group) not in self._left:
            return own
        return whole if own in right else own ^ (own == whole)


def replay_of(profile: str) -> Replay:
    """An empty replay by the rules of a profile that is modelled."""
    return StateReplay() if MODELLED[profile].one_state else Replay()
