"""The state that the specification keeps: groups, and a node's membership in each.

**Theory.** A `Group` has what only a spectator knows (*history variables*): who led each term, that
leader's log, what is committed, and to whom votes were given. A `Member` has what its node wrote,
what of that is durable, and what messages it got in this life. A node may act on a message late or
never, so a message only widens what the member *may* do. In Raft what a member may do only grows
during a life, and so no step that is allowed is ever refused.

Logs are kept whole, also below a snapshot: a snapshot stands for committed entries.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from ottla.sim.specification.in_sync import Leading, Rules
from ottla.sim.specification.trace import NOBODY, Ask, Entry, Message, Write


class Forbidden(Exception):  # noqa: N818 - it names what a step is
    """The specification does not allow this step. `member`: whose step it is."""

    member: Member | None = None


class Stored:
    """Term, vote and log of a member, as written or as durable."""

    def __init__(self, term: int = 0, vote: int = NOBODY, log: Sequence[Entry] = ()):
        self.term, self.vote, self.log = term, vote, list(log)

    def take(self, write: Write, committed: Sequence[Entry]) -> None:
        """Do what a write says."""
        if write.delete:
            self.term, self.vote, self.log = 0, NOBODY, []
        if write.state is not None:
            self.term, self.vote = write.state
        if write.snapshot is not None and write.reset:
            self.log = [*committed[: write.snapshot[0]]]
        if write.entries:
            self.log[write.first - 1 :] = write.entries

    @property
    def end(self) -> tuple[int, int]:
        """Term and index of the last entry: the later pair is the more up-to-date log (5.4.1)."""
        return (self.log[-1].term if self.log else 0, len(self.log))

    def agrees(self, log: Sequence[Entry], index: int) -> bool:
        """Whether this log has the same entry there. By log matching all before it are the same,
        too."""
        if index == 0:
            return True
        return (
            index <= len(self.log) and index <= len(log) and self.log[index - 1] == log[index - 1]
        )


class Group:
    """One group: what all its members together have done."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.deleted = False
        """Whether a member dropped it: that is decided, and from then on nobody is judged. A node
        that restarts may even open it anew, without its memory, until it learns of the end."""
        self.voters: tuple[int, ...] = ()
        self.minimum = 1
        """How many replicas must be in sync (min.insync.replicas)."""
        self.leaders: dict[int, int] = {}
        """The leader of each term."""
        self.logs: dict[int, list[Entry]] = {}
        """The log of each term's leader, up to the last entry that it appended in that term."""
        self.votes: dict[tuple[int, int], int] = {}
        """By term and node, to whom it said that it gave its vote."""
        self.committed: list[Entry] = []
        self.ends: list[int] = [0]
        """By index, the offset behind that entry of the committed log."""
        self.commits: dict[int, int] = {}
        """By term, up to where its leader has committed."""

    @property
    def majority(self) -> int:
        """How many members make one."""
        return len(self.voters) // 2 + 1

    @property
    def needed(self) -> int:
        """How many replicas must be in sync."""
        return min(self.minimum, len(self.voters))

    def commit(self, log: Sequence[Entry], index: int) -> None:
        """A log is committed up to `index`. Raises `Forbidden` if another log was (State Machine
        Safety)."""
        known = len(self.committed)
        there = min(known, index)
        if there and log[there - 1] != self.committed[there - 1]:
            raise Forbidden(
                f"entry {there} is committed as {self.committed[there - 1]}, here it is "
                f"{log[there - 1]}"
            )
        for entry in log[known:index]:
            self.committed.append(entry)
            self.ends.append(self.ends[-1] + entry.records)


class Asked(NamedTuple):
    """What was so when a request came."""

    step: int
    at: int
    asks: Ask
    commit: int
    least: int
    """How many replicas were in sync then."""


class Member:
    """One node's membership in a group."""

    def __init__(self, group: Group, node: int, rules: Rules):
        self.group, self.node, self.rules = group, node, rules
        self.now = self.step = 0
        """The time and the number of the present step."""
        self.open = False
        """Whether its disk has the group."""
        self.written, self.durable = Stored(), Stored()
        self.replaced: list[list[Entry]] = []
        """Logs that became durable with the last sync, and were replaced in the same sync."""
        self.pending: list[Write] = []
        """Writes that are not durable."""
        self.begin()

    def begin(self) -> None:
        """A life begins: all that is not on the disk is gone."""
        self.heard = 0
        """The highest term in a message."""
        self.commit = 0
        """Up to where it said that it knows its log committed."""
        self.bound = 0
        """It cannot know more committed than this."""
        self.leading: Leading | None = None
        """Its present leadership, or the last one."""
        self.asks: dict[int, Asked] = {}
        """Requests that are open."""
        self.asked: dict[tuple[int, int, bool], bool] = {}
        """By term, candidate and `pre`: whether that log was as up to date as this one."""
        self.offers: dict[tuple[int, int], int] = {}
        """By term and leader, the last index of entries that came from it."""
        self.barriers: set[tuple[int, int, int]] = set()
        """Leader, term and number of the barriers that it may answer."""
        self.grants: defaultdict[tuple[int, bool], set[int]] = defaultdict(set)
        """By term and `pre`, who granted a vote."""
        self.acks: defaultdict[int, dict[int, int]] = defaultdict(dict)
        """By term, up to where each follower said that it holds this leader's log."""
        self.ordered: set[int] = set()
        """Terms in which the leader ordered an election."""
        self.chunks: dict[tuple[int, int, int], tuple[int, int]] = {}
        """By leader, term and index: how many bytes of that snapshot came without a gap, and its
        size."""
        self.snapshots: set[tuple[int, int]] = set()
        """Index and term of the snapshots it has stored."""

    def leads(self, term: int) -> None:
        """A leadership begins, and nobody has said yet that it holds its log."""
        acks = self.acks[term] = {}
        peers = tuple(each for each in self.group.voters if each != self.node)
        first = len(self.written.log) + 1
        self.leading = Leading(term, self.now, first=first, peers=peers, acks=acks)

    def show(self) -> None:
        """If it leads and enough replicas may be in sync, readers may see all that it knows
        committed."""
        leading, now = self.leading, self.now
        if leading is not None and leading.most(self.rules, now, now) >= self.group.needed:
            leading.showable = max(leading.showable, self.commit)

    def least(self) -> int:
        """No fewer replicas are in sync; 0 if it does not lead. If it heard of a newer term, its
        own may be over."""
        if self.leading is None:
            return 0
        return 1 if self.heard > self.leading.term else self.leading.least(self.rules, self.now)

    def is_past(self, term: int) -> bool:
        """Whether a message of that term comes after the term was over for this node: then nothing
        may follow from it but an answer in the newer term."""
        return term < self.written.term

    def opens(self, voters: tuple[int, ...]) -> None:
        """Its disk has the group now."""
        self.open = True
        self.group.voters = self.group.voters or voters

    def hear(self, message: Message) -> None:
        """It learns the term of a message. Pre-votes are about a term that nobody has begun."""
        if not message.pre or (message.kind == "vote" and not message.yes):
            self.heard = max(self.heard, message.term)

    def told(self) -> str:
        """Its state in one line."""
        written, durable = self.written, self.durable
        knows = f"knows {self.commit} committed, may know {self.bound}"
        led = "" if self.leading is None else f", led term {self.leading.term}"
        return (
            f"wrote {_told(written)}; durable {_told(durable)}; {knows}; heard of term "
            f"{self.heard}{led}"
        )


def _told(stored: Stored) -> str:
    term, index = stored.end
    vote = f"vote {stored.vote}" if stored.vote else "no vote"
    return f"term {stored.term}, {vote}, {index} entries, the last of term {term}"
