"""The specification: what Raft, the in-sync rule and reads allow a node to do.

**Theory of operation.** A trace is a list of plain events (`trace.py`). They show a node from
outside: the messages that it gets and sends, what its disk takes and keeps, and what its clients
ask and are told. `Specification` keeps a state (`state.py`) and takes one event after the other.
The event must be a step that its row of `TRANSITIONS` allows in that state. If it is not, `step`
raises `Forbidden`: either the node has broken a rule, or this model has a bug. (The idea is that of
etcd-io/raft, and of the paper Validating Traces of Distributed Programs.)

The rows are of two kinds. A message that arrives is always allowed; it widens what the node may do
later. What a node does (send, write, commit, answer) needs a reason in what came before.

What a node decides inside is hidden: that it stands for election, becomes leader, or knows more
committed. Such a step is taken when its first trace shows, if it was possible by then. A turn of a
node may take several steps and show only their result. So the rules ask what *must* hold whatever
happened inside, and they never refuse a correct run.

This room shares no code with what it judges: it imports nothing of Ottla but itself.

| module | rules |
|---|---|
| `elections.py` | terms, votes, pre-votes, transfer, who leads |
| `replication.py` | entries, acknowledgements, commits, truncation, snapshots |
| `disk.py` | what is durable, what a new life finds |
| `in_sync.py` | how many replicas are in sync |
| `reads.py` | what clients are told |

Time counts only in `in_sync.py`. So leases on votes and check-quorum are not judged. Liveness is
not judged either: no rule says that something must happen in the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from ottla.sim.specification import disk, elections, reads, replication
from ottla.sim.specification.in_sync import Rules
from ottla.sim.specification.state import Forbidden, Group, Member
from ottla.sim.specification.trace import ALL_GROUPS, Event

PLAIN = Rules()
_HEARS = "always; it says what the node may do later"


class Transition(NamedTuple):
    """One row: an event of a trace, and when it is allowed."""

    event: str
    """Its kind, and that of its message."""
    rule: Callable[[Member, Any], None]
    """Takes the step. Raises `Forbidden`."""
    allowed: str
    """When it is allowed, in words."""
    source: str


TRANSITIONS: tuple[Transition, ...] = (
    Transition("receive vote?", elections.hear_candidate, _HEARS, "paper 5.4.1"),
    Transition("receive vote", elections.hear_vote, _HEARS, "paper 5.2"),
    Transition("receive append?", replication.hear_entries, _HEARS, "paper 5.3"),
    Transition("receive append", replication.hear_ack, _HEARS, "paper 5.3"),
    Transition("receive heartbeat?", replication.hear_heartbeat, _HEARS, "paper 5.2"),
    Transition("receive heartbeat", replication.hear_confirmation, _HEARS, "thesis 6.4"),
    Transition("receive snapshot?", replication.hear_snapshot, _HEARS, "figure 13"),
    Transition("receive snapshot", replication.hear_ack, _HEARS, "figure 13"),
    Transition("receive timeout-now", elections.hear_order, _HEARS, "thesis 3.10"),
    Transition("receive alive", replication.hear_life, _HEARS, "promise-A2"),
    Transition(
        "send vote?",
        elections.ask_for_votes,
        "the node's log is as long as it says; its vote for itself is durable, and a majority"
        " granted the pre-vote or the leader ordered the election",
        "thesis 9.6",
    ),
    Transition(
        "send vote",
        elections.give_vote,
        "the candidate asked, with a log that is up to date; the vote is durable, and the only one"
        " of its term",
        "paper 5.4.1",
    ),
    Transition(
        "send append?",
        replication.send_entries,
        "the node leads that term; the entries and the one before are those of its log; it can"
        " know that much committed",
        "figure 2",
    ),
    Transition(
        "send append",
        replication.send_ack,
        "on success: that leader sent the entries, and the durable log is the leader's up to there",
        "figure 2",
    ),
    Transition(
        "send heartbeat?",
        replication.send_heartbeat,
        "the node leads that term, and the follower confirmed all that is called committed",
        "paper 5.2",
    ),
    Transition(
        "send heartbeat",
        replication.confirm,
        "the node can know of that term; a barrier is one that the leader asked for in that term,"
        " before it was over for the node",
        "thesis 6.4",
    ),
    Transition(
        "send snapshot?",
        replication.send_snapshot,
        "the node leads that term and has stored that snapshot",
        "figure 13",
    ),
    Transition(
        "send snapshot",
        replication.send_received,
        "that many bytes came without a gap; when it is done, all that the snapshot stands for is"
        " durable",
        "figure 13",
    ),
    Transition(
        "send timeout-now",
        replication.order_election,
        "the node leads that term, and the follower holds its whole log",
        "thesis 3.10",
    ),
    Transition(
        "write",
        replication.write,
        "a term rises to one heard of, or by 1 to stand, and has one vote; a leader only appends,"
        " until it orders an election; a follower takes its leader's entries, drops none committed"
        " or equal; snapshots are committed",
        "figure 2",
    ),
    Transition(
        "durable", disk.become_durable, "always; a sync covers the writes before it", "paper 5.2"
    ),
    Transition(
        "start",
        disk.begin_life,
        "the disk holds all that was durable, and of the later writes the first few",
        "paper 5.2",
    ),
    Transition(
        "commit",
        replication.commit,
        "of a leader: a majority confirmed an entry of its own term; of a follower: its leader said"
        " so; all commit the same log",
        "paper 5.4.2",
    ),
    Transition("ask", reads.ask, _HEARS, "promise-K3"),
    Transition(
        "answer",
        reads.answer,
        "success: it leads, and committed in its term; acks=all: committed, enough in sync; readers"
        " see what is committed and not held. Out of range or order: a majority confirmed the"
        " leader since the request",
        "thesis 6.4",
    ),
)
BY_EVENT = {each.event: each for each in TRANSITIONS}


class Refusal(NamedTuple):
    """A step that is not allowed."""

    number: int
    """Of the event, from 0."""
    event: Event
    transition: Transition
    why: str
    state: str
    """What the specification knew of the member before the step."""

    def lines(self, group: str) -> list[str]:
        """All of it, for people. `group`: what they call the group."""
        return [
            f"event {self.number}: {self.event}",
            f"node {self.event.node}, {group}: {self.why}",
            f"state before: {self.state}",
            f"allowed: {self.transition.allowed} ({self.transition.source})",
        ]


class Specification:
    """The state after the steps so far. `rules`: the settings that count."""

    def __init__(self, rules: Rules = PLAIN) -> None:
        self.rules = rules
        self.groups: dict[int, Group] = {}
        self.members: dict[tuple[int, int], Member] = {}
        self.steps = 0
        self._nodes: dict[int, list[Member]] = {}

    def member(self, node: int, group: int) -> Member:
        """A node's membership in a group."""
        found = self.members.get((node, group))
        if found is None:
            owner = self.groups.setdefault(group, Group(group))
            found = self.members[node, group] = Member(owner, node, self.rules)
            self._nodes.setdefault(node, []).append(found)
        return found

    def judged(self, event: Event) -> Refusal | None:
        """Take one step. If it is not allowed, why not; no step may follow it."""
        try:
            self.step(event)
        except Forbidden as forbidden:
            member = forbidden.member
            assert member is not None, "`step` has set it"
            at = event._replace(group=member.group.number)
            transition = BY_EVENT[name_of(event)]
            return Refusal(self.steps - 1, at, transition, str(forbidden), member.told())
        return None

    def step(self, event: Event) -> None:
        """Take one step. Raises `Forbidden`, with the member, if it is not allowed."""
        rule = BY_EVENT[name_of(event)].rule
        self.steps += 1
        if event.kind == "start":
            self._start(event)
            return
        if event.group != ALL_GROUPS:
            self._take(self.member(event.node, event.group), event, rule)
        if event.group == ALL_GROUPS or event.slow:
            only_leaders = rule is replication.hear_life  # most events are of this kind
            for member in self._nodes.get(event.node, ()):
                if only_leaders and member.leading is None:
                    continue
                if member.group.number != event.group:
                    self._take(member, event, rule)

    def _start(self, event: Event) -> None:
        found = {each.group: each for each in event.body}
        for group in found:
            self.member(event.node, group)
        for member in self._nodes.get(event.node, ()):
            if not member.group.deleted:
                self._judge(member, disk.begin_life, found.get(member.group.number))

    def _take(self, member: Member, event: Event, rule: Callable[[Member, Any], None]) -> None:
        member.now, member.step = event.at, self.steps
        if member.leading is not None:
            member.leading.look(self.rules, event.at, slow=event.slow)
        about = event.group in (ALL_GROUPS, member.group.number)
        if about and not member.group.deleted:
            if event.kind == "receive":
                member.hear(event.body)
            self._judge(member, rule, event.body)

    def _judge(self, member: Member, rule: Callable[[Member, Any], None], body: Any) -> None:
        try:
            rule(member, body)
        except Forbidden as forbidden:
            forbidden.member = member
            raise


def name_of(event: Event) -> str:
    """The name of its transition."""
    return f"{event.kind} {event.body.kind}" if event.kind in {"receive", "send"} else event.kind


def check(events: Iterable[Event], rules: Rules = PLAIN) -> Refusal | None:
    """The first step of a trace that is not allowed; None if all are."""
    specification = Specification(rules)
    return next(filter(None, map(specification.judged, events)), None)
