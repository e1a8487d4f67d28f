"""`Leadership` and the seam beside it: what a machine that is written tomorrow needs, and no more.

The machine here is such a newcomer: it keeps words in order. It counts no followers and watches no
log, so it has nothing of the kind.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from inspect import getsource
from textwrap import dedent

import pytest

from broker_machine import MachineDriver
from ottla.broker.controller.controller import Controller
from ottla.broker.errors import ErrorCode
from ottla.broker.partition.partition import Partition
from ottla.broker.turn.leadership import Leadership
from ottla.broker.turn.machine import Machine, Outbox, Proposals
from ottla.broker.turn.tickets import Ticket
from ottla.raft.types import Entry, EntryKind, LogIndex, Micros, Proposal, Snapshot

LONG: Micros = 1_000_000
MOST_MEMBERS = 11
ELSEWHERE = ErrorCode.NOT_CONTROLLER


class Word(Ticket):
    """Say a word; with `doubtful`, only if this node is proved to lead."""

    def __init__(self, word: bytes, *, doubtful: bool = False, within: Micros = LONG) -> None:
        super().__init__(lambda _: None, 1_000_000 + within)
        self.word, self.doubtful = word, doubtful


class Words:
    """A machine that keeps words in order."""

    def __init__(self) -> None:
        self.outbox = Outbox()
        self.leadership = Leadership(self._refuse)
        self.said: list[bytes] = []
        self._queue: list[Word] = []
        self._proposed: list[Word] = []
        self._applied: LogIndex = 0

    def submit(self, ticket: Ticket, now: Micros) -> None:
        assert isinstance(ticket, Word)
        if not self.leadership.leading:
            self._refuse(ticket)
        elif not self.leadership.synced:
            self.leadership.wait(ticket, self._serve)
        else:
            self._serve(ticket)

    def _serve(self, ticket: Word) -> None:
        if ticket.doubtful:
            self.leadership.barriers.ask(ticket, self._queue.append)
        else:
            self._queue.append(ticket)

    def _refuse(self, ticket: Ticket) -> None:
        ticket.done, ticket.error = True, ELSEWHERE
        self.outbox.now.append(ticket)

    def deadline(self) -> Micros | None:
        return min((each.deadline for each in self.leadership.open_tickets()), default=None)

    def tick(self, now: Micros) -> None:
        self.leadership.overdue(now)

    def has_pending(self) -> bool:
        return len(self._queue) > 0

    def take_proposals(self, inflight_bytes: int, now: Micros) -> Proposals | None:
        if not self._queue:
            return None
        items = [Proposal(EntryKind.COMMAND, each.word) for each in self._queue]
        return Proposals(self.leadership.term, items)

    def proposed(self, first: LogIndex | None) -> None:
        if first is not None:
            self._proposed += self._queue
            self._queue.clear()

    def apply(self, entries: Sequence[Entry], now: Micros) -> None:
        for entry in entries:
            self._applied = entry.index
            if entry.kind is EntryKind.COMMAND:
                assert isinstance(entry.payload, bytes)
                self.said.append(entry.payload)
            if entry.kind is EntryKind.COMMAND and self._proposed:
                done = self._proposed.pop(0)
                done.done = True
                self.outbox.now.append(done)
        if self.leadership.opens(self._applied):
            self.leadership.open()

    def resign(self) -> None:
        self.leadership.fail()
        for ticket in (*self._proposed, *self._queue):
            self._refuse(ticket)
        self._proposed.clear()
        self._queue.clear()

    def restore(self, snapshot: Snapshot, now: Micros) -> None:
        self.said = [snapshot.data]


@pytest.fixture
def driver() -> MachineDriver[Words]:
    """Leads term 1, whose first entry is appended and not committed."""
    made = MachineDriver(Words())
    made.lead(1)
    return made


def test_a_machine_has_about_ten_members():
    members = {each for each in vars(Machine) if not each.startswith("_")}
    assert len({*members, *Machine.__annotations__}) <= MOST_MEMBERS


@pytest.mark.parametrize("machine", [Partition, Controller, Words])
def test_no_machine_has_a_stub(machine):
    """The controller had five: two that did nothing, two that noted what only they read, and a
    barrier that could not be."""
    (made,) = ast.parse(dedent(getsource(machine))).body
    assert isinstance(made, ast.ClassDef)
    methods = [each for each in made.body if isinstance(each, ast.FunctionDef)]
    bodies = {each.name: [one for one in each.body if not _says_nothing(one)] for each in methods}
    assert [name for name, body in bodies.items() if not body] == []


def _says_nothing(statement: ast.stmt) -> bool:
    """Docstrings, `pass`, constants that are returned, errors that are raised."""
    if isinstance(statement, ast.Expr | ast.Return):
        return statement.value is None or isinstance(statement.value, ast.Constant)
    return isinstance(statement, ast.Pass | ast.Raise)


def test_who_comes_before_the_first_entry_is_applied_waits_and_is_served_in_order(driver):
    words = [Word(b"a"), Word(b"b")]
    driver.submit(*words)
    assert (driver.propose(), driver.answered()) == ([], [])
    driver.settle()
    assert (driver.machine.said, driver.answered()) == ([b"a", b"b"], words)


def test_who_only_reads_is_served_after_who_writes(driver):
    leadership, served = driver.machine.leadership, []
    for name, reads in ((b"read", True), (b"write", False), (b"another", False)):
        leadership.wait(Word(name), lambda each: served.append(each.word), reads=reads)
    leadership.open()
    assert served == [b"write", b"another", b"read"]


def test_who_waits_too_long_for_it_is_sent_elsewhere_and_nobody_else(driver):
    late, other = Word(b"late", within=10), Word(b"other")
    driver.submit(late, other)
    driver.sleep(10)
    assert (driver.answered(), late.error) == ([late], ELSEWHERE)
    driver.settle()
    assert (driver.machine.said, driver.answered()) == ([b"other"], [other])


@pytest.mark.parametrize("end", ["follow", "lead", "close"])
def test_whoever_waits_is_sent_elsewhere_when_a_leadership_ends(driver, end):
    driver.settle()
    doubtful, queued = Word(b"doubtful", doubtful=True), Word(b"queued")
    driver.submit(doubtful, queued)
    if end == "close":
        driver.close()
    else:
        getattr(driver, end)(2)
    assert driver.answered() == [doubtful, queued]
    assert {doubtful.error, queued.error} == {ELSEWHERE}
    leadership = driver.machine.leadership
    assert (leadership.leading, leadership.synced) == (end == "lead", False)


@pytest.mark.parametrize("confirmed", [True, False])
def test_a_barrier_that_ends_goes_on_with_its_ticket_or_refuses_it(driver, confirmed):
    driver.settle()
    word = Word(b"word", doubtful=True)
    driver.submit(word)
    leadership = driver.machine.leadership
    assert (leadership.take_barriers(), leadership.take_barriers()) == (1, 0)
    leadership.barriers.ended(confirmed)
    driver.settle()
    assert (driver.answered(), word.done) == ([word], True)
    assert driver.machine.said == ([b"word"] if confirmed else [])


def test_a_leadership_that_ends_twice_is_told_once(driver):
    leadership = driver.machine.leadership
    assert leadership.follow(2, 2)
    assert not leadership.follow(3, 3)
    assert not leadership.close()
    assert (leadership.leader, leadership.term) == (0, 3)
