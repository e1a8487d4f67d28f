"""Traces made by hand: a group of a few nodes, each step named, for tests of the specification.

`Traced` plays correct steps with few words, up to the one that a test is about. All its clocks are
one, `now`, and each step takes a microsecond. `led` is the usual beginning: node 1 leads term 1.
"""

from __future__ import annotations

from typing import Any

import pytest

from ottla.sim.specification.in_sync import Rules
from ottla.sim.specification.specification import Specification
from ottla.sim.specification.state import Forbidden, Member
from ottla.sim.specification.trace import (
    ALL_GROUPS,
    Answer,
    Ask,
    Entry,
    Event,
    Found,
    Message,
    Write,
)

GROUP = 1
FIRST = Entry(0, 7)
"""The entry that names the voters."""
LAG = 1_000_000


class Traced:
    """A group whose members have booted. `now` is the time of all clocks."""

    def __init__(self, nodes: int = 3):
        self.spec, self.now = Specification(Rules(LAG)), 0
        self.nodes = tuple(range(1, nodes + 1))
        self._numbers = dict.fromkeys(self.nodes, 0)
        self._refs = 0
        self.events: list[Event] = []
        """All steps so far."""
        for node in self.nodes:
            self.start(node)
            self.write(node, first=1, entries=(FIRST,), voters=self.nodes)
            self.sync(node)

    def member(self, node: int) -> Member:
        """What the specification knows of a node."""
        return self.spec.member(node, GROUP)

    def step(self, kind: str, node: int, body: Any, group: int = GROUP, **more: Any) -> None:
        """One event. Raises `Forbidden`."""
        self.now += 1
        self.events.append(Event(kind, node, group, self.now, body, **more))
        self.spec.step(self.events[-1])

    # ---- disks

    def write(self, node: int, **fields: Any) -> None:
        """The disk takes one write."""
        self._numbers[node] += 1
        self.step("write", node, (Write(self._numbers[node], **fields),))

    def sync(self, node: int) -> None:
        """All that was written is durable."""
        self.step("durable", node, self._numbers[node], ALL_GROUPS)

    def start(self, node: int, *found: Found) -> None:
        """A life begins."""
        self.step("start", node, found, ALL_GROUPS)

    def found(self, node: int, *, entries: int | None = None) -> Found:
        """All that a node wrote, or so many entries of it."""
        written = self.member(node).written
        return Found(GROUP, written.term, written.vote, 1, tuple(written.log[:entries]))

    # ---- messages

    def send(self, kind: str, sender: int, to: int, term: int, **more: Any) -> Message:
        """A message leaves."""
        message = Message(kind, sender, to, term, **more)
        self.step("send", sender, message)
        return message

    def take(self, message: Message) -> None:
        """It arrives."""
        self.step("receive", message.to, message)

    def carry(self, kind: str, sender: int, to: int, term: int, **more: Any) -> None:
        """It leaves and arrives."""
        self.take(self.send(kind, sender, to, term, **more))

    # ---- what a correct group does

    def stand(self, node: int, term: int, voters: tuple[int, ...]) -> None:
        """A candidate gets pre-votes, and writes its vote for itself."""
        log_term, log_index = self.member(node).written.end
        end = {"log_index": log_index, "log_term": log_term}
        for voter in voters if term > 1 else ():
            self.carry("vote?", node, voter, term, pre=True, **end)
            self.carry("vote", voter, node, term, yes=True, pre=True)
        self.write(node, state=(term, node))
        self.sync(node)
        for voter in voters:
            self.carry("vote?", node, voter, term, **end)

    def vote(self, voter: int, candidate: int, term: int) -> None:
        """A vote is written, and given."""
        self.write(voter, state=(term, candidate))
        self.sync(voter)
        self.carry("vote", voter, candidate, term, yes=True)

    def elect(self, node: int, term: int, *voters: int) -> None:
        """A node becomes leader, and appends its first entry."""
        self.stand(node, term, voters)
        for voter in voters:
            self.vote(voter, node, term)
        self.append(node, Entry(term, 0))

    def append(self, node: int, *entries: Entry) -> None:
        """A leader adds entries to its log, durably."""
        self.write(node, first=len(self.member(node).written.log) + 1, entries=entries)
        self.sync(node)

    def offer(self, leader: int, to: int, term: int, *, after: int, commit: int = 0) -> None:
        """A leader sends all its entries behind one."""
        log = self.member(leader).written.log
        self.carry(
            "append?",
            leader,
            to,
            term,
            log_index=after,
            log_term=log[after - 1].term,
            entries=tuple(log[after:]),
            commit=commit,
        )

    def copy(self, leader: int, to: int, term: int, *, after: int, commit: int = 0) -> None:
        """A follower takes a leader's entries, durably, and says so."""
        self.offer(leader, to, term, after=after, commit=commit)
        log = tuple(self.member(leader).written.log)
        state = (term, 0) if self.member(to).written.term < term else None
        if log[after:] and self.member(to).written.log[after:] != list(log[after:]):
            self.write(to, state=state, first=after + 1, entries=log[after:])
            self.sync(to)
        self.carry("append", to, leader, term, yes=True, log_index=len(log))

    def commit(self, node: int, index: int) -> None:
        """A node knows that much committed."""
        self.step("commit", node, index)

    # ---- clients

    def ask(self, node: int, **fields: Any) -> int:
        """A request comes; returns its name."""
        self._refs += 1
        self.step("ask", node, Ask(self._refs, **fields))
        return self._refs

    def answer(self, node: int, ref: int, what: str, error: str = "NONE", **more: Any) -> None:
        """It is answered."""
        self.step("answer", node, Answer(ref, what, error, **more))


def led(*entries: Entry, nodes: int = 3) -> Traced:
    """Node 1 leads term 1, and all nodes hold and know committed its first entry and these."""
    traced = Traced(nodes)
    followers = traced.nodes[1:]
    traced.elect(1, 1, *followers)
    if entries:
        traced.append(1, *entries)
    for node in followers:
        traced.copy(1, node, 1, after=1)
    traced.commit(1, 2 + len(entries))
    return traced


def refuses(words: str) -> Any:
    """The next step is not allowed, and the reason says this."""
    return pytest.raises(Forbidden, match=words)
