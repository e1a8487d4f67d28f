"""Replicas in sync: bounds on how many there are, from what a leader heard and wrote.

A follower is in sync if, at some moment of the last `lag`, it held all that the leader's log held
at that moment (K-WATERMARK, promise-A2). A leader learns of that moment later, and it may act on
what it heard later still. So there are two numbers: no more than `most` replicas can be in sync,
and `least` replicas must be. A node that is slow, or was frozen, is not judged for a while.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from typing import NamedTuple

from ottla.sim.specification.trace import NOBODY, Message

_NEVER = -(1 << 62)


class Rules(NamedTuple):
    """The settings that the specification needs to know."""

    lag: int = 10_000_000
    """Microseconds."""
    waits_for_all: bool = False
    """Whether readers wait for all replicas in sync, as in Kafka: then nothing is held too long."""
    proves_gaps: bool = True
    """Whether a leader proves that it leads before it refuses a gap in sequences."""


class Leading:
    """One leadership: what counts for the replicas in sync, and for reads. `acks` has, by follower,
    the last index of this leader's log that the follower said it holds. The caller keeps it up to
    date, also after this object is made."""

    def __init__(
        self, term: int, now: int, *, first: int, peers: tuple[int, ...], acks: Mapping[int, int]
    ):
        self.term, self.begun = term, now
        self.first = first
        """The index of its own first entry."""
        self.showable = self.first - 1
        """Up to there readers may see the log; what earlier leaders left may have been seen."""
        self.shown = 0
        """The highest high watermark that it showed."""
        self.ordered = NOBODY
        """Whom it ordered to lead in its place."""
        self.rounds: dict[int, int] = {}
        """By the number of a barrier, the step at which its first heartbeat left."""
        self.answered: dict[int, int] = {}
        """By follower, the highest barrier that it answered."""
        self._peers, self._acks = peers, acks
        self._heard: dict[int, int] = {}
        self._vouched: dict[int, int] = {}
        self._behind: dict[int, int] = {}
        self._slow = _NEVER
        self._ends: list[int] = []
        self._times: list[int] = []

    def wrote(self, last: int, now: int) -> None:
        """Its log ends there from now on."""
        self._ends.append(last)
        self._times.append(now)

    def heard(self, message: Message, now: int) -> None:
        """A follower lives; some messages say that it followed at a time in the past."""
        self._heard[message.sender] = now
        if message.kind == "alive" and message.yes and message.context > self.begun:
            self._vouched[message.sender] = message.context
        elif message.kind in ("append", "snapshot") and message.yes and message.term == self.term:
            self._vouched[message.sender] = now

    def look(self, rules: Rules, now: int, *, slow: bool) -> None:
        """Note who is behind before something changes, and show what may be shown."""
        if slow:
            self._slow = now
        if not self._ends:
            return
        acks, last = self._acks, self._ends[-1]
        for peer in self._peers:
            if acks.get(peer, 0) >= last:
                continue
            since = self._lacks_since(peer)
            if since is not None and 4 * (now - since) > rules.lag:
                self._behind[peer] = now

    def most(self, rules: Rules, since: int, now: int) -> int:
        """No more than these were in sync at any time since then."""
        oldest = since - rules.lag - rules.lag // 10
        if self.begun >= oldest or self._not_judged(rules, now):
            return 1 + len(self._peers)
        return 1 + sum(self._caught_up(peer, rules) >= oldest for peer in self._peers)

    def least(self, rules: Rules, now: int) -> int:
        """These are in sync, unless the term is over and the node does not know it yet."""
        if self._not_judged(rules, now):
            return 1
        if now - self.begun <= rules.lag - rules.lag // 10:
            return 1 + len(self._peers)
        return 1 + sum(
            2 * (now - self._vouched.get(peer, _NEVER)) <= rules.lag
            and 4 * (now - self._behind.get(peer, _NEVER)) > 3 * rules.lag
            for peer in self._peers
        )

    def _not_judged(self, rules: Rules, now: int) -> bool:
        return now - self._slow <= rules.lag + rules.lag // 10

    def _caught_up(self, peer: int, rules: Rules) -> int:
        """When it last held all, at the latest."""
        since, heard = self._lacks_since(peer), self._heard.get(peer, _NEVER)
        if since is not None and since <= heard + rules.lag + rules.lag // 10:
            return min(since, heard + rules.lag)
        return heard

    def _lacks_since(self, peer: int) -> int | None:
        """When the first entry was written that it is not known to hold. None: it holds all."""
        match = self._acks.get(peer, 0)
        place = bisect_left(self._ends, match + 1)
        return None if place == len(self._ends) else max(self._times[place], self.begun)
