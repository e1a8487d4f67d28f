"""Commands that come to the controller twice, because a leader died before it answered.

Expectations from `broker/controller/outcomes.py`: whoever asks again is told what came of it the
first time, by any leader, after any snapshot, and nothing happens twice.
"""

from __future__ import annotations

from dataclasses import replace

import msgpack
import pytest

from broker_control import CLUSTER_ID, controller, create, leader, ticket
from ottla.broker.controller.catalog import SNAPSHOT_FORMAT, WITHOUT_RECENT, Catalog
from ottla.broker.controller.commands import PlaceTopic
from ottla.broker.controller.outcomes import REMEMBERED
from ottla.broker.errors import ErrorCode
from ottla.broker.turn.commands import AllocateProducerIds, DeleteTopic
from ottla.broker.turn.machine import Compaction

MINE = (2, 77, 1)
OTHERS = (3, 77, 1)


def next_leader(old, term=2):
    """A node that has all of a leader's log, and leads now."""
    new = controller()
    new.receive(old.log)
    new.lead(term)
    new.commit()
    return new


def test_a_creation_that_an_earlier_leader_decided_is_told_as_it_went():
    old = leader()
    first = old.ask(create("t"), MINE)
    new = next_leader(old)
    again = new.ask(create("t"), MINE)
    assert (again.error, again.result) == (ErrorCode.NONE, first.result)
    assert again.index == first.index
    assert len(new.log) == len(old.log) + 1, "its own first entry"
    assert new.ask(create("t"), OTHERS).error is ErrorCode.TOPIC_ALREADY_EXISTS


def test_a_command_that_was_proposed_and_is_committed_by_the_next_leader_is_done_once():
    old = leader()
    lost = ticket(create("t"), origin=MINE)
    old.submit(lost)
    old.propose()
    old.follow(2)
    new = next_leader(old)
    assert new.ask(create("t"), MINE).error is ErrorCode.NONE
    assert new.machine.version == 1


def test_a_deletion_that_comes_again_does_not_touch_what_was_made_since():
    driver = leader()
    driver.ask(create("t"))
    first = driver.ask(DeleteTopic("t"), MINE)
    driver.ask(create("t"))
    again = driver.ask(DeleteTopic("t"), MINE)
    assert (again.error, again.result) == (first.error, first.result)
    assert list(driver.machine.topics) == ["t"]


def test_of_two_that_are_under_way_together_the_log_takes_the_first():
    driver = leader()
    driver.ask(create("t"))
    twice = [ticket(DeleteTopic("t"), origin=MINE), ticket(DeleteTopic("t"), origin=MINE)]
    driver.submit(twice[0], ticket(create("t")), twice[1])
    driver.settle()
    assert [each.error for each in twice] == [ErrorCode.NONE] * 2
    driver.ask(create("u"))
    assert "u" in driver.machine.topics


def test_what_was_refused_by_the_log_stays_refused():
    catalog = Catalog(CLUSTER_ID)
    resolved = PlaceTopic("t", partitions=1, replication_factor=1, nodes=(1,), configs={})
    catalog.apply(1, resolved)
    late = replace(resolved, by=MINE)
    assert catalog.apply(2, late).error is ErrorCode.TOPIC_ALREADY_EXISTS
    catalog.apply(3, DeleteTopic("t"))
    assert catalog.apply(4, late).error is ErrorCode.TOPIC_ALREADY_EXISTS


def test_every_number_of_every_life_of_every_node_is_another_command():
    driver = leader()
    for place, origin in enumerate([(1, 1, 1), (1, 1, 2), (1, 2, 1), (2, 1, 1)]):
        driver.ask(create(f"t{place}"), origin)
    assert len(driver.machine.topics) == 4


def test_no_block_of_ids_is_given_twice_not_even_to_who_asks_again():
    driver = leader()
    blocks = [driver.ask(AllocateProducerIds(2), MINE).result["first"] for _ in range(2)]
    assert blocks == [0, 1000]


def test_a_snapshot_says_what_was_decided():
    driver = leader(compact_every=4)
    first = driver.ask(create("t"), MINE)
    driver.ask(create("t"), OTHERS)
    driver.ask(create("u"))
    driver.ask(create("v"))
    fresh = leader(compact_every=4)
    fresh.restore(driver.compactions[-1])
    assert fresh.machine.catalog.encode() == driver.compactions[-1].data
    assert fresh.machine.catalog.recent.find(MINE) == driver.machine.catalog.recent.find(MINE)
    found = fresh.machine.catalog.recent.find(MINE)
    assert found is not None
    assert (found[0], found[1].result) == (first.index, first.result)


def test_a_snapshot_from_before_there_were_origins_is_read():
    driver = leader()
    driver.ask(create("t"))
    number, *state, _ = msgpack.unpackb(driver.machine.catalog.encode())
    assert number == SNAPSHOT_FORMAT
    fresh = controller()
    fresh.restore(Compaction(2, msgpack.packb((WITHOUT_RECENT, *state))))
    assert list(fresh.machine.topics) == ["t"]


@pytest.mark.parametrize(("others", "known"), [(REMEMBERED - 1, True), (REMEMBERED, False)])
def test_the_memory_goes_back_so_many_commands(others, known):
    catalog = Catalog("c")
    for number in range(others + 1):
        catalog.apply(number + 1, DeleteTopic("none", by=(1, 1, number)))
    assert (catalog.recent.find((1, 1, 0)) is not None) is known
