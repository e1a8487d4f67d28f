"""Every ticket is answered once, whatever it waits for when leadership goes or time is up.

`WAITS` and `IN_LOG` list every place in which a ticket can wait; the property at the end mixes all
of them with every event there is.
"""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker_core_partition import (
    ELSEWHERE,
    FULL,
    LONG,
    PartitionDriver,
    make_partition,
)
from ottla.broker.turn.tickets import Ticket


def unsynced(driver):
    driver.lead(3)


WAITS = {
    "produce, before sync": (unsynced, lambda d: d.produce(7, 0)),
    "fetch, before sync": (unsynced, lambda d: d.fetch(0)),
    "list offsets, before sync": (unsynced, lambda d: d.list_offsets(-1)),
    "epoch end, before sync": (unsynced, lambda d: d.epoch_end(1)),
    "watch, before sync": (unsynced, lambda d: d.watch(0)),
    "produce, in the queue": (None, lambda d: d.produce(7, 1)),
    "plain produce, in the queue": (None, lambda d: d.produce()),
    "produce, behind the mutex": (lambda d: d.produce(7, 1), lambda d: d.produce(7, 2)),
    "produce, a gap": (None, lambda d: d.produce(7, 9)),
    "delete records, in the queue": (None, lambda d: d.delete_records(1)),
    "watch": (None, lambda d: d.watch(1)),
}
IN_LOG = {
    "produce, in the log": lambda d: d.produce(7, 1),
    "plain produce, in the log": lambda d: d.produce(),
    "delete records, in the log": lambda d: d.delete_records(1),
}


def started():
    driver = PartitionDriver(make_partition(queue_bytes=1))
    driver.serve()
    driver.produce(7, 0)
    driver.settle()
    driver.answered()
    return driver


def waiting(kind):
    driver = started()
    if kind in IN_LOG:
        ticket = IN_LOG[kind](driver)
        driver.propose()
    else:
        prepare, make = WAITS[kind]
        if prepare is not None:
            prepare(driver)
        ticket = make(driver)
        driver.propose(inflight=FULL)
    assert not ticket.done, f"{kind} does not wait"
    return driver, ticket


ALL_KINDS = [*WAITS, *IN_LOG]


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_who_waits_when_leadership_goes_hears_it_once(kind):
    driver, ticket = waiting(kind)
    driver.follow(9, leader=2)
    answers = driver.answered()
    assert answers.count(ticket) == 1
    assert ticket.error is ELSEWHERE
    driver.sleep(2 * LONG)
    driver.serve(10)
    driver.settle()
    driver.sleep(2 * LONG)
    assert driver.answered() == []


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_who_waits_too_long_hears_it_once_and_at_the_deadline(kind):
    driver, ticket = waiting(kind)
    driver.sleep(LONG - 1)
    assert not ticket.done
    driver.sleep(1)
    assert driver.answered().count(ticket) == 1
    driver.follow(9, leader=2)
    driver.serve(10)
    driver.settle()
    assert ticket not in driver.answered()


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_who_waits_is_served_in_the_end(kind):
    driver, ticket = waiting(kind)
    driver.settle()
    driver.barrier(confirmed=True)
    driver.produce()
    driver.settle()
    assert driver.answered().count(ticket) == 1
    assert ticket.error is not ELSEWHERE


def moves():
    sequences = st.integers(0, 5)
    return st.lists(
        st.one_of(
            st.tuples(
                st.just("produce"), st.sampled_from((7, 8)), sequences, st.sampled_from((-1, 0, 1))
            ),
            st.tuples(st.just("plain")),
            st.tuples(st.just("fetch"), sequences),
            st.tuples(st.just("watch"), sequences),
            st.tuples(st.just("list")),
            st.tuples(st.just("delete"), sequences),
            st.tuples(st.just("propose"), st.sampled_from((0, 0, FULL)), st.booleans()),
            st.tuples(st.just("commit"), st.integers(1, 4)),
            st.tuples(st.just("barrier"), st.booleans()),
            st.tuples(st.just("sleep"), st.sampled_from((1, 500, 1500))),
            st.tuples(st.just("follow")),
            st.tuples(st.just("lead")),
        ),
        max_size=60,
    )


class Player:
    """Plays moves, counts answers."""

    def __init__(self):
        self.driver = PartitionDriver(make_partition(queue_bytes=200))
        self.term = 0
        self.tickets = []
        self.answers: Counter[Ticket] = Counter()
        self.errors = {}

    def play(self, name, *given):
        before = self.driver.machine.state.high_watermark
        getattr(self, f"on_{name}")(*given)
        assert self.driver.machine.state.high_watermark >= before
        for ticket in self.driver.answered():
            assert ticket.done
            self.answers[ticket] += 1
            self.errors[ticket] = (ticket.error, getattr(ticket, "base_offset", None))

    def on_produce(self, producer_id, sequence, acks):
        self.tickets.append(self.driver.produce(producer_id, sequence, acks=acks, within=1000))

    def on_plain(self):
        self.tickets.append(self.driver.produce(within=1000))

    def on_fetch(self, offset):
        self.tickets.append(self.driver.fetch(offset, within=1000))

    def on_watch(self, offset):
        self.tickets.append(self.driver.watch(offset, within=1000))

    def on_list(self):
        self.tickets.append(self.driver.list_offsets(-1, within=1000))

    def on_delete(self, offset):
        self.tickets.append(self.driver.delete_records(offset, within=1000))

    def on_propose(self, inflight, refuse):
        self.driver.propose(inflight=inflight, refuse=refuse)

    def on_commit(self, count):
        self.driver.commit(min(self.driver.committed + count, len(self.driver.log)))

    def on_barrier(self, confirmed):
        self.driver.barrier(confirmed)

    def on_sleep(self, span):
        self.driver.sleep(span)

    def on_follow(self):
        self.term += 1
        self.driver.follow(self.term, leader=2)

    def on_lead(self):
        self.term += 1
        self.driver.lead(self.term)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(moves())
def test_every_ticket_is_answered_exactly_once_and_keeps_its_answer(script):
    player = Player()
    player.play("lead")
    for move in script:
        player.play(*move)
    player.play("sleep", 2000)
    player.play("follow")
    assert [player.answers[each] for each in player.tickets] == [1] * len(player.tickets)
    for ticket, (error, base_offset) in player.errors.items():
        assert (ticket.error, getattr(ticket, "base_offset", None)) == (error, base_offset)
    assert player.driver.machine.deadline() is None
