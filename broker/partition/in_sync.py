"""Which replicas are in sync, as their leader sees it: Kafka's rule on top of Raft's commit.

A follower is in sync if it was *caught up* within the lag time (promise-A2, Kafka's
lastCaughtUpTime): at some moment within that time it held everything that the leader's log held
then. Raft's quorum does not depend on this. `min.insync.replicas` only decides what is accepted
(error 19) and what is confirmed (error 20).

The leader learns when a follower was caught up, each in O(1) per acknowledgement:

* The follower acknowledges the leader's current log end: it is caught up now.
* The follower acknowledges a *mark*, which was the log end at an earlier contact: it was caught up
  when the mark was set. Kafka moves the mark with every fetch, because a follower has one fetch at
  a time. Here many appends are in flight at once. A follower that is always one round trip behind
  would never reach a mark that moves each time. So a mark stays until it is reached. A follower
  that is always behind by less than half the lag time is in sync.
* There is nothing to acknowledge, because the follower's match is the log end: each contact
  (`contact`) counts as caught up. When the leader appends (`appended`), a follower that was idle
  counts as caught up until that moment, so that it has the lag time to answer.

All positions are last log indexes, all times `Micros` of one monotonic clock.
"""

from __future__ import annotations

from collections.abc import Sequence

from ottla.raft.types import LogIndex, Micros, NodeId

_NEVER: Micros = -1


class _Follower:
    """What the leader remembers of one other voter."""

    __slots__ = ("caught_up", "contacted", "mark_at", "mark_end", "match")

    def __init__(self, now: Micros, log_end: LogIndex):
        self.match: LogIndex = 0
        self.caught_up = now
        self.contacted = now
        self.mark_end = log_end
        self.mark_at = now


class InSync:
    """The in-sync replicas of one partition; valid on its leader, from `begin` on.

    `replica_lag` is the lag time, `voters` are all replicas, `node` is this node.
    """

    __slots__ = (
        "_count",
        "_followers",
        "_log_end",
        "_node",
        "_replica_lag",
        "_stable_until",
        "_voters",
    )

    def __init__(self, replica_lag: Micros, voters: Sequence[NodeId], node: NodeId):
        self._replica_lag = replica_lag
        self._voters = tuple(voters)
        self._node = node
        self._log_end: LogIndex = 0
        self._followers: dict[NodeId, _Follower] = {}
        self._count = 0
        self._stable_until: Micros = _NEVER
        self.begin(0, 0)

    def begin(self, now: Micros, log_end: LogIndex) -> None:
        """A leadership begins: every voter counts as in sync for one lag time.

        `log_end` is the last index of the leader's log before its own first entry.
        """
        self._log_end = log_end
        self._followers = {
            voter: _Follower(now, log_end) for voter in self._voters if voter != self._node
        }
        self._stable_until = _NEVER

    def appended(self, log_end: LogIndex, now: Micros) -> None:
        """The leader's log now ends at `log_end`. Called once per turn, not once per entry.

        A follower that held everything before this append, and was heard of within the lag time,
        counts as caught up at `now`.
        """
        before = self._log_end
        for follower in self._followers.values():
            if follower.match >= before and now - follower.contacted <= self._replica_lag:
                follower.caught_up = now
                follower.mark_end = log_end
                follower.mark_at = now
        self._log_end = log_end

    def note(self, follower: NodeId, match: LogIndex, log_end: LogIndex, now: Micros) -> None:
        """`follower` acknowledged everything up to `match`; the leader's log ends at `log_end`."""
        state = self._followers.get(follower)
        if state is None:
            return
        self._log_end = log_end
        state.contacted = now
        state.match = max(state.match, match)
        if match >= log_end:
            self._caught_up(state, now, now)
        elif match >= state.mark_end:
            self._caught_up(state, state.mark_at, now)
        else:
            return
        state.mark_end = log_end
        state.mark_at = now

    def contact(self, follower: NodeId, at: Micros) -> None:
        """A heartbeat says that `follower` was alive and followed at `at`, which may be in the
        past."""
        state = self._followers.get(follower)
        if state is None or at <= state.contacted:
            return
        state.contacted = at
        if state.match >= self._log_end:
            self._caught_up(state, at, at)

    def in_sync(self, now: Micros) -> tuple[NodeId, ...]:
        """The replicas in sync at `now`, the leader included, in the order of the voters."""
        oldest = now - self._replica_lag
        node, followers = self._node, self._followers
        return tuple(
            voter for voter in self._voters if voter == node or followers[voter].caught_up >= oldest
        )

    @property
    def replicas(self) -> int:
        """How many replicas there are, in sync or not."""
        return len(self._voters)

    def below_minimum(self, minimum: int, now: Micros) -> bool:
        """Whether fewer replicas are in sync than `min.insync.replicas` requires.

        The minimum never exceeds the number of replicas (K-WATERMARK). The call costs two
        comparisons unless a replica may have fallen out of sync since the last call.
        """
        if now > self._stable_until:
            self._recount(now)
        return self._count < min(minimum, len(self._voters))

    def everywhere(self, now: Micros) -> LogIndex:
        """The last index that every replica in sync at `now` holds, as far as this leader knows."""
        oldest = now - self._replica_lag
        followers = self._followers.values()
        held = (each.match for each in followers if each.caught_up >= oldest)
        return min(held, default=self._log_end)

    def falls_out(self, now: Micros) -> Micros | None:
        """When the next replica falls out of sync unless it is heard of. None: none is left."""
        oldest = now - self._replica_lag
        followers = self._followers.values()
        times = (each.caught_up for each in followers if each.caught_up >= oldest)
        first = min(times, default=None)
        return None if first is None else first + self._replica_lag + 1

    def _caught_up(self, state: _Follower, at: Micros, now: Micros) -> None:
        if at <= state.caught_up:
            return
        if now - state.caught_up > self._replica_lag:
            self._stable_until = _NEVER  # it was out of sync, so count again
        state.caught_up = at

    def _recount(self, now: Micros) -> None:
        oldest = now - self._replica_lag
        times = [s.caught_up for s in self._followers.values() if s.caught_up >= oldest]
        self._count = len(times) + (self._node in self._voters)
        self._stable_until = min(times, default=now) + self._replica_lag
