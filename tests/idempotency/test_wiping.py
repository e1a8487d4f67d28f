"""One state for all epochs of a producer (RP-ONE-STATE): what a newer epoch wipes, and where.

The own view of a replica is what it has met; the applied state is what the log says. In these tests
`ask` does what a leader's admission does; what is accepted stays in flight until it is applied.
"""

from __future__ import annotations

from functools import partial
from random import Random

import pytest

from ottla.idempotency.decisions import Accept, Duplicate, Reject
from ottla.idempotency.producer import InFlight
from ottla.idempotency.rulebooks import RULEBOOKS
from ottla.idempotency.sessions import make_table
from ottla.idempotency.wiping import WipingTable
from ottla.log.types import BatchIdentity
from work import instructions_of


class Replica:
    """A table that is asked, as the leader's admission asks it, and applies."""

    def __init__(self, room=10):
        table = make_table(RULEBOOKS["redpanda-24.3"], room)
        assert isinstance(table, WipingTable)
        self.table = table

    def ask(self, first, epoch=0, last=None, producer=7):
        """The row of the answer. What is accepted is in flight."""
        who = BatchIdentity(producer, epoch, first, first if last is None else last)
        decision = self.table.decide(who, 1)
        if isinstance(decision, Accept):
            self.table.begin(who, 1)
        elif isinstance(decision, Reject):
            self.table.meet(who)
        return decision.row.label

    def apply(self, first, epoch=0, producer=7):
        index = self.table.applied_index + 1
        who = BatchIdentity(producer, epoch, first, first)
        self.table.apply(who, index * 10, 5, index=index, term=1)

    def offset(self, first, epoch=0):
        decision = self.table.decide(BatchIdentity(7, epoch, first, first), 1)
        assert isinstance(decision, Duplicate)
        return decision.base_offset


@pytest.fixture
def replica():
    return Replica()


def test_an_older_epoch_is_judged_as_if_it_were_the_current_one(replica):
    replica.apply(0, epoch=3)
    assert replica.ask(0, epoch=1) == "range-finished"
    assert replica.ask(1, epoch=1) == "follows"
    assert replica.ask(3, epoch=1) == "follows-nothing"


def test_a_newer_epoch_wipes_even_if_its_batch_is_refused(replica):
    replica.apply(0)
    assert replica.ask(4, epoch=1) == "empty-elsewhere"
    assert replica.ask(1) == "empty-elsewhere", "the tail of epoch 0 is gone"
    assert replica.ask(0) == "empty-at-zero", "and so is its batch"


def test_a_wipe_is_this_replicas_own(replica):
    """The next leader knows what the log says, so it recognises the batch."""
    other = Replica()
    for each in (replica, other):
        each.apply(0)
    replica.ask(4, epoch=1)
    assert other.ask(0) == "range-finished"
    assert replica.table.digest() == other.table.digest()
    for each in (replica, other):
        each.apply(0, epoch=2)
    assert replica.table.describe() == other.table.describe()


def test_a_wipe_outlasts_the_leadership_but_not_a_restart(replica):
    replica.apply(0)
    replica.ask(4, epoch=1)
    replica.table.new_term(2)
    assert replica.ask(1) == "empty-elsewhere"
    replica.table.restore(replica.table.snapshot())
    assert replica.ask(1) == "follows"


def test_who_was_refused_is_known_and_has_no_batch(replica):
    """redpanda-S4: nothing excuses a beginning elsewhere any more."""
    assert replica.ask(-1) == "negative-sequence"
    assert replica.ask(5) == "empty-elsewhere"
    assert Replica().ask(5) == "newcomer-anywhere"


def test_after_a_lost_beginning_only_zero_is_accepted(replica):
    assert replica.ask(5) == "newcomer-anywhere"
    replica.table.new_term(2)  # and the batch is in nobody's log
    assert replica.ask(6) == "empty-elsewhere"
    assert replica.ask(0) == "empty-at-zero"


def test_a_batch_of_the_old_epoch_may_take_the_place_of_one_of_the_new(replica):
    """redpanda-S11: it was in flight when the newer epoch began with the same range."""
    replica.ask(0)
    assert replica.ask(0, epoch=1) == "empty-at-zero"
    replica.apply(0)
    assert replica.ask(0, epoch=1) == "range-finished"
    assert replica.offset(0, epoch=1) == 10, "the offset of the batch of epoch 0"


def test_a_batch_across_the_wrap_is_refused_and_wipes_all_the_same(replica):
    replica.apply(2**31 - 2)
    assert replica.ask(2**31 - 1, epoch=1, last=0) == "across-the-wrap"
    assert replica.ask(2**31 - 1) == "empty-elsewhere"


def test_five_finished_batches_are_known_and_all_in_flight():
    replica = Replica()
    for n in range(6):
        replica.apply(n)
    for n in range(6, 9):
        assert replica.ask(n) == "follows"
    told = [replica.ask(n) for n in range(9)]
    assert told == ["follows-nothing", *["range-finished"] * 5, *["range-in-flight"] * 3]


def test_requests_of_an_older_term_do_not_count(replica):
    replica.ask(0)
    assert replica.table.decide(BatchIdentity(7, 0, 0, 0), 2).row.label == "follows-nothing"


def test_who_was_forgotten_begins_anywhere_also_before_the_decision_is_applied(replica):
    replica.apply(0)
    replica.table.expire([7])
    assert replica.ask(9) == "newcomer-anywhere"
    replica.table.apply_expire([7], index=2)
    assert replica.ask(10) == "follows"
    assert list(replica.table.describe()["producers"]) == [7]


def test_a_stranger_takes_no_room_and_finds_none():
    replica = Replica(room=1)
    replica.ask(-1, producer=8)
    replica.apply(0)
    assert replica.ask(0, producer=8) == "too-many-producers"
    assert replica.ask(1) == "follows"


def test_so_many_strangers_are_remembered_as_there_may_be_producers():
    replica = Replica(room=3)
    for producer in range(10, 20):
        replica.ask(-1, producer=producer)
    told = replica.table.describe()["producers"]
    assert list(told) == [17, 18, 19]
    assert told[19]["own_view"] == {"epoch": 0, "finished": []}


def test_who_is_wiped_while_its_batch_is_in_the_log_takes_room():
    """Once it counted as nobody, so that there was no bound: 12 producers in a table for 3."""
    replica = Replica(room=2)
    for producer in (10, 11, 12):
        replica.ask(0, producer=producer)
        told = replica.ask(5, epoch=1, producer=producer)
        assert told == ("too-many-producers" if producer == 12 else "empty-elsewhere")
    for producer in (10, 11):
        replica.apply(0, producer=producer)
    assert replica.ask(0, producer=12) == "too-many-producers"
    assert len(replica.table) == 2


def test_a_wiped_batch_that_got_no_place_in_the_log_takes_no_room():
    replica = Replica(room=1)
    wiped = replica.table.begin(BatchIdentity(7, 0, 0, 0), 1)
    newer = replica.table.begin(BatchIdentity(7, 1, 0, 0), 1)
    replica.table.abandon(newer)
    assert replica.ask(0, producer=8) == "too-many-producers"
    replica.table.abandon(wiped)
    assert replica.ask(0, producer=8) == "empty-at-zero"


def test_a_wiped_batch_takes_room_until_the_term_ends():
    replica = Replica(room=1)
    replica.ask(0)
    replica.ask(5, epoch=1)
    replica.table.keep([])
    assert replica.ask(0, producer=8) == "too-many-producers"
    replica.table.new_term(2)
    assert replica.ask(0, producer=8) == "empty-at-zero"


class Leader:
    """A table for three producers, a leader queue, and a log of which a part is applied. Both hold
    requests in flight and, as lists, decisions to forget."""

    def __init__(self, seed):
        self.random = Random(seed)
        self.table = Replica(room=3).table
        self.queue: list[InFlight | list[int]] = []
        self.log: list[InFlight | list[int]] = []
        self.end = 0

    def ask(self):
        first = self.random.choice([0, 0, 1, 2, 5])
        who = BatchIdentity(self.random.randrange(6), self.random.randrange(3), first, first)
        decision = self.table.decide(who, 1)
        victims = self.table.longest_idle(1)
        if decision.row.label == "too-many-producers" and victims:
            self.table.expire(victims)
            self.queue.append(victims)
            decision = self.table.decide(who, 1)
        if isinstance(decision, Accept):
            self.queue.append(self.table.begin(who, 1))
        elif isinstance(decision, Reject):
            self.table.meet(who)

    def propose(self):
        for index, item in enumerate(self.queue, self.end + 1):
            if isinstance(item, InFlight):
                self.table.enqueued(item, index)
        self.end += len(self.queue)
        self.log += self.queue
        self.queue = []

    def fail(self):
        for item in self.queue:
            if isinstance(item, InFlight):
                self.table.abandon(item)
            else:
                self.table.keep(item)
        self.queue = []

    def apply(self):
        index = self.end - len(self.log) + 1
        for item in self.log[:1]:
            if isinstance(item, InFlight):
                self.table.apply(item.identity, index, 0, index=index, term=1)
            else:
                self.table.apply_expire(item, index=index)
        del self.log[:1]

    def known_at_the_end(self):
        known = {
            each for each, told in self.table.describe()["producers"].items() if told["finished"]
        }
        for item in (*self.log, *self.queue):
            if isinstance(item, InFlight):
                known.add(item.identity.producer_id)
            else:
                known -= set(item)
        return known


@pytest.mark.parametrize("seed", range(20))
def test_room_is_counted_as_it_is_at_the_end_of_the_log(seed):
    leader = Leader(seed)
    steps = [leader.ask, leader.propose, leader.fail, leader.apply]
    for _ in range(100):
        leader.random.choices(steps, [60, 15, 5, 20])[0]()
        assert 3 - len(leader.known_at_the_end()) == 1 - leader.table.surplus()
        assert len(leader.table) <= 3


def test_a_pile_of_one_producer_is_judged_at_a_cost_that_does_not_grow():
    """A pile of 4,000 batches in flight took 2.1 s: each was looked for among all before it."""
    replica = Replica()
    for n in range(100):
        replica.ask(n)
    first = instructions_of(partial(replica.ask, 100))
    for n in range(101, 500):
        replica.ask(n)
    assert instructions_of(partial(replica.ask, 500)) == pytest.approx(first, rel=0.2)


def test_no_view_is_looked_for_among_those_with_a_request_in_flight():
    replica = Replica(room=200)
    for producer in range(200):
        replica.ask(0, producer=producer)
    told = {replica.ask(-1, producer=1000 + n) for n in range(3)}
    assert told == {"too-many-producers"}
    assert len(replica.table.describe()["producers"]) == 201
    assert instructions_of(partial(replica.ask, -1, producer=2000)) < 1000


def test_any_epoch_is_read_from_a_snapshot(replica):
    replica.apply(0, epoch=-(2**15))
    before = replica.table.describe()
    replica.table.restore(replica.table.snapshot())
    assert replica.table.describe() == before
