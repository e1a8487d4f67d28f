"""A command's way through the controller: when it waits, when it is answered, and with what.

The tests say what consensus decided (`lead`, `commit`, `follow`) and in which order; a ticket must
be answered exactly once, with the outcome of its own entry, whatever happens in between.
"""

from __future__ import annotations

import pytest

from broker_control import CLUSTER_ID, NEVER, controller, create, leader, ticket
from ottla.broker.controller.catalog import Catalog
from ottla.broker.controller.commands import PlaceTopic
from ottla.broker.errors import ErrorCode, SnapshotFormatError
from ottla.broker.turn.commands import AllocateProducerIds, DeleteTopic
from ottla.broker.turn.machine import Compaction
from ottla.raft.types import ENTRY_OVERHEAD_BYTES, EntryKind


def errors(tickets):
    return [each.error for each in tickets]


def test_a_node_that_does_not_lead_answers_not_controller_at_once():
    driver = controller()
    for role in (lambda: None, lambda: driver.follow(3, leader=2)):
        role()
        asked = ticket(create("t"))
        driver.submit(asked)
        assert driver.answered() == [asked]
        assert (asked.error, asked.done) == (ErrorCode.NOT_CONTROLLER, True)


def test_commands_wait_until_the_leader_s_own_first_entry_is_applied():
    driver = controller()
    driver.lead(term=1)
    asked = ticket(create("t"))
    driver.submit(asked)
    assert (driver.propose(), driver.answered(), driver.machine.leadership.synced) == (
        [],
        [],
        False,
    )
    driver.commit()
    assert driver.machine.leadership.synced
    assert len(driver.propose()) == 1
    assert driver.answered() == []
    driver.commit()
    assert driver.answered() == [asked]
    assert asked.error is ErrorCode.NONE


def test_what_earlier_terms_decided_counts_before_a_new_leader_answers():
    old, new = leader(), controller()
    old.ask(create("t"))
    new.receive(old.log)
    new.lead(term=2)
    asked = ticket(create("t", validate_only=True))
    new.submit(asked)
    assert new.answered() == []
    new.commit()
    assert errors(new.answered()) == [ErrorCode.TOPIC_ALREADY_EXISTS]


def test_commands_are_proposed_in_the_order_they_came_in_one_go():
    driver = leader()
    names = [f"t{n}" for n in range(5)]
    driver.submit(*(ticket(create(name)) for name in names))
    assert len(driver.propose()) == 5
    driver.commit()
    assert errors(driver.answered()) == [ErrorCode.NONE] * 5
    assert list(driver.machine.topics) == names


def test_of_two_creations_that_race_the_second_is_told_so():
    driver = leader()
    tickets = [
        ticket(create("t")),
        ticket(create("t")),
        ticket(create("a.b")),
        ticket(create("a_b")),
    ]
    driver.submit(*tickets)
    driver.settle()
    assert driver.answered() == tickets
    assert [each.error for each in tickets] == [0, 36, 0, 17]
    assert "already exists" in tickets[1].result["message"]
    assert [driver.machine.topics[name].partitions[0].group for name in ("t", "a.b")] == [1, 2]


def test_who_asks_behind_a_creation_hears_that_the_topic_exists_whatever_else_is_wrong():
    """As Kafka's controller, which decides one after the other: 36 before 38 and 40. The catalog
    did not know of the creation yet, and the second request heard of its factor or its config."""
    driver = leader()
    first, *behind = tickets = [
        ticket(create("t")),
        ticket(create("t", replication_factor=9)),
        ticket(create("t", configs={"no.such": "1"})),
        ticket(create("t", partitions=0, validate_only=True)),
    ]
    driver.submit(*tickets)
    assert driver.answered() == []
    driver.settle()
    assert (driver.answered(), first.error) == (tickets, ErrorCode.NONE)
    assert errors(behind) == [ErrorCode.TOPIC_ALREADY_EXISTS] * 3
    assert len(driver.machine.topics) == 1


def test_what_happens_to_one_name_happens_in_the_order_it_was_asked_for():
    driver = leader()
    driver.submit(
        *(tickets := [ticket(create("t")), ticket(DeleteTopic("t")), ticket(create("t"))])
    )
    other = ticket(create("u"))
    driver.submit(other)
    assert len(driver.propose()) == 2, "another name does not wait"
    driver.settle()
    assert errors([*tickets, other]) == [ErrorCode.NONE] * 4
    assert list(driver.machine.topics) == ["u", "t"]


def test_who_waits_behind_a_command_that_never_enters_the_log_is_judged_all_the_same():
    driver = leader()
    late = ticket(create("t"), deadline=driver.now + 100)
    behind, third = ticket(create("t")), ticket(create("t"), deadline=driver.now + 100)
    driver.submit(late, behind, third)
    driver.sleep(100)
    assert errors([late, third]) == [ErrorCode.REQUEST_TIMED_OUT] * 2
    driver.settle()
    assert (driver.answered(), behind.error) == ([late, third, behind], ErrorCode.NONE)


def test_of_two_deletions_that_race_the_second_finds_nothing():
    driver = leader()
    driver.ask(create("t"))
    driver.submit(ticket(DeleteTopic("t")), ticket(DeleteTopic("t")))
    driver.settle()
    assert errors(driver.answered()) == [0, 3]


def test_loss_of_leadership_answers_everything_that_is_open():
    driver = controller()
    driver.lead(term=1)
    waiting = ticket(create("w"))
    driver.submit(waiting)
    driver.follow(2)
    assert (driver.answered(), waiting.error) == ([waiting], ErrorCode.NOT_CONTROLLER)
    driver.lead(term=3)
    driver.commit()
    proposed, queued = ticket(create("p")), ticket(create("q"))
    driver.submit(proposed)
    driver.propose()
    driver.submit(queued)
    driver.follow(4)
    assert driver.answered() == [proposed, queued]
    assert errors([proposed, queued]) == [ErrorCode.NOT_CONTROLLER] * 2
    driver.commit()
    assert list(driver.machine.topics) == ["p"], "proposed, so another leader committed it"
    assert driver.answered() == [], "and nobody is told twice"


def test_a_command_queued_in_one_term_is_not_proposed_in_the_next():
    driver = leader()
    driver.submit(ticket(create("t")))
    driver.lead(term=2)
    driver.commit()
    assert driver.propose() == []
    assert errors(driver.answered()) == [ErrorCode.NOT_CONTROLLER]


def test_a_refused_proposal_is_answered_not_controller():
    driver = leader()
    driver.submit(ticket(create("t")), ticket(create("u")))
    assert driver.propose(refuse=True) == []
    assert errors(driver.answered()) == [ErrorCode.NOT_CONTROLLER] * 2
    assert driver.machine.deadline() is None


def test_an_overdue_command_that_was_not_proposed_never_happens():
    driver = leader()
    late = ticket(create("late"), deadline=driver.now + 100)
    driver.submit(late, ticket(create("t")))
    assert driver.machine.deadline() == late.deadline
    driver.sleep(99)
    assert driver.answered() == []
    driver.sleep(1)
    assert (driver.answered(), late.error) == ([late], ErrorCode.REQUEST_TIMED_OUT)
    driver.settle()
    assert list(driver.machine.topics) == ["t"]


def test_an_overdue_command_that_was_proposed_happens_and_is_answered_once():
    driver = leader()
    late = ticket(create("late"), deadline=driver.now + 100)
    driver.submit(late)
    driver.propose()
    driver.sleep(100)
    driver.commit()
    assert (driver.answered(), late.error) == ([late], ErrorCode.REQUEST_TIMED_OUT)
    assert list(driver.machine.topics) == ["late"]


def test_waiting_for_sync_ends_at_the_deadline_too():
    driver = controller()
    driver.lead(term=1)
    late = ticket(create("t"), deadline=driver.now + 5)
    driver.submit(late)
    driver.sleep(5)
    driver.settle()
    assert (driver.answered(), late.error) == ([late], ErrorCode.REQUEST_TIMED_OUT)
    assert dict(driver.machine.topics) == {}


def test_the_next_deadline_is_that_of_an_open_ticket():
    driver = leader()
    driver.submit(ticket(create("a"), driver.now + 10), ticket(create("b"), driver.now + 20))
    driver.settle()
    assert driver.machine.deadline() is None
    driver.submit(ticket(create("c"), driver.now + 30), ticket(create("d"), NEVER))
    assert driver.machine.deadline() == driver.now + 30


def test_proposals_stop_at_the_leader_queue_s_budget_and_go_on_below_it():
    driver = leader(leader_queue_bytes=2 * ENTRY_OVERHEAD_BYTES)
    driver.submit(*(ticket(create(f"t{n}")) for n in range(3)))
    machine = driver.machine
    assert machine.take_proposals(2 * ENTRY_OVERHEAD_BYTES, driver.now) is None
    assert len(driver.propose()) == 1
    driver.settle()
    assert len(machine.topics) == 3


def test_entries_that_are_no_commands_pass_through():
    driver = controller()
    driver.lead(term=1)
    configuration = type(driver.log[0])(2, 1, EntryKind.CONFIGURATION, b"\xc1 no msgpack")
    driver.receive([configuration])
    driver.commit()
    assert (driver.machine.applied, driver.machine.version) == (2, 0)


def test_version_rises_with_what_changed_and_not_with_what_was_refused():
    driver = leader()
    seen = [driver.machine.version]
    for command in (
        create("t"),
        create("t"),
        AllocateProducerIds(1),
        DeleteTopic("t"),
        DeleteTopic("t"),
    ):
        driver.ask(command)
        seen.append(driver.machine.version)
    assert seen == [0, 1, 1, 2, 3, 3]


def test_a_group_is_unknown_then_alive_then_deleted_for_good():
    driver = leader()
    machine = driver.machine
    assert (machine.deleted(1), machine.partition_of(1)) == (False, None)
    driver.ask(create("t", partitions=2))
    topic = machine.topics["t"]
    assert machine.partition_of(2) == (topic, topic.partitions[1])
    driver.ask(DeleteTopic("t"))
    assert [machine.deleted(group) for group in (0, 1, 2, 3)] == [False, True, True, False]
    assert machine.partition_of(2) is None
    driver.ask(create("t"))
    assert machine.topics["t"].partitions[0].group == 3
    assert machine.topics["t"].topic_id != topic.topic_id


def test_a_snapshot_is_asked_for_every_so_many_entries_and_names_the_last_applied():
    driver = leader(compact_every=4)
    for number in range(10):
        driver.ask(create(f"t{number}"))
    assert [each.index for each in driver.compactions] == [4, 8]
    fresh = controller(compact_every=4)
    fresh.restore(driver.compactions[-1])
    assert fresh.machine.applied == 8
    assert len(fresh.machine.topics) == 7
    assert fresh.machine.outbox.compaction is None


def test_a_snapshot_holds_everything_that_counts_for_what_comes_next():
    driver = leader(compact_every=8)
    for command in (
        create("a", partitions=4, configs={"retention.ms": "-1"}),
        create("b"),
        AllocateProducerIds(2),
        DeleteTopic("b"),
        create("c", replication_factor=2),
        AllocateProducerIds(1),
        DeleteTopic("none"),
    ):
        driver.ask(command)
    fresh = leader(compact_every=8)
    driver.ask(create("d"))
    fresh.restore(driver.compactions[-1])
    old, new = driver.machine.catalog, fresh.machine.catalog
    assert driver.compactions[-1].index == driver.machine.applied
    assert new.encode() == old.encode()
    assert (new.version, dict(new.topics)) == (old.version, dict(old.topics))
    assert new.loads.place((1, 2, 3), 5, 1) == old.loads.place((1, 2, 3), 5, 1)
    assert new.id_blocks.allocate(3).first == old.id_blocks.allocate(3).first == 2000
    assert [new.deleted(group) for group in range(9)] == [old.deleted(group) for group in range(9)]


def test_a_snapshot_of_another_format_is_refused_with_both_numbers():
    with pytest.raises(SnapshotFormatError, match="format 9, this Ottla reads 1 and 2"):
        controller().restore(Compaction(5, b"\x95\x09\x00\x01\x00\x90"))


def test_topic_ids_look_like_uuids_and_depend_on_cluster_and_place_in_the_log():
    command = PlaceTopic("t", 1, 1, (1,), {}, assignments=((1,),))
    ids = [
        Catalog(cluster).apply(index, command).result["topic_id"]
        for cluster in (CLUSTER_ID, "other")
        for index in range(1, 50)
    ]
    assert len(set(ids)) == len(ids)
    assert all(len(each) == 16 and each[6] >> 4 == 8 and each[8] >> 6 == 2 for each in ids)


def test_a_log_that_does_not_follow_on_is_an_error_with_both_numbers():
    driver = leader()
    with pytest.raises(AssertionError, match="apply of 1 after 1"):
        driver.machine.apply(driver.log, driver.now)
