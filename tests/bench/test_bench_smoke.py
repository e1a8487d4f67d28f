"""The bench runs, and idempotence costs no turn, no message and no sync. Numbers, never times.

Each item runs its quick plan. What it measures is looked at as far as it is a count; times depend
on what else the machine does.
"""

import re

import pytest

from bench import (
    bursts,
    comparing,
    folders,
    fuzz,
    growth,
    guard,
    idempotent,
    lasting,
    looking,
    loops,
    moves,
    restarting,
    shrinking,
    simulator,
    studies,
    throughput,
    turns,
)
from bench.host import TOPIC
from bench.null_server import answer_tail
from studies_spark import need_spark


@pytest.fixture(scope="module")
def processes():
    bench = idempotent.Bench()
    yield bench
    bench.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(idempotent.BURSTS))
def test_an_idempotent_producer_takes_the_turns_messages_and_syncs_of_a_plain_one(processes, name):
    found = idempotent.counted(processes, idempotent.QUICK, name)
    assert found.details["plain"] == found.details["idempotent"], found.note


@pytest.mark.parametrize("name", sorted(idempotent.BURSTS))
def test_a_burst_that_arrives_together_costs_four_turns_and_one_round_of_messages(processes, name):
    _, burst = idempotent.BURSTS[name]
    plain = idempotent.counted(processes, idempotent.QUICK, name).details["plain"]
    bursts = idempotent.QUICK.counted // burst
    assert plain == {"turns": 4 * bursts, "messages": 4 * bursts, "syncs": 3 * bursts}


@pytest.mark.slow
def test_every_request_of_a_round_is_answered_by_ottla_and_by_the_null_server():
    report = throughput.run_produce(throughput.Plan(rounds=1, requests=20))
    names = [each.name for each in report.outcomes]
    assert [f"produce over null, {size}" for size in throughput.SIZES] == names[::2]
    assert all(each.measured > 0 for each in report.outcomes)


def test_the_null_server_gives_the_answer_a_broker_would_give():
    """Topic array of one, the name, partition array of one, index 0, error 0, offset 0."""
    assert answer_tail(TOPIC).startswith(b"\0\0\0\1\0\5bench\0\0\0\1\0\0\0\0\0\0" + bytes(8))


@pytest.mark.slow
def test_the_growth_of_partitions_and_producers_is_measured():
    report = growth.run(growth.QUICK)
    assert len(report.outcomes) == 4 * len(growth.QUICK.partitions) + 2 * len(
        growth.QUICK.producers
    )
    assert all(each.measured > 0 for each in report.outcomes)


@pytest.mark.slow
def test_restarts_and_memory_are_measured():
    report = restarting.run(restarting.QUICK)
    assert len(report.outcomes) == 2 * len(restarting.QUICK.batches) + 1
    assert all(each.measured > 0 for each in report.outcomes[:-1])


@pytest.mark.slow
def test_what_long_traffic_leaves_in_memory_is_measured_and_its_caches_are_bounded():
    memory, cache, producers, events = lasting.run(lasting.QUICK).outcomes
    assert memory.note.count(" ") >= lasting.QUICK.seconds / lasting.QUICK.look / 2
    assert cache.met
    assert producers.met
    assert events.measured > 0


@pytest.mark.slow
def test_the_longest_turn_is_measured_of_everything_large_that_a_client_may_send():
    report = turns.run(turns.Plan(elements=300, partitions=10, clients=2))
    apis = {each.name.partition(",")[0].partition(" ")[0] for each in report.outcomes}
    assert {"Metadata", "Fetch", "Produce", "CreateTopics", "DeleteTopics", "ListOffsets"} <= apis
    assert all(each.measured > 0 for each in report.outcomes)


def test_every_loop_is_measured_with_what_it_can_do():
    report = loops.run(loops.QUICK)
    names = {each.name.rpartition(", ")[2] for each in report.outcomes}
    assert {"deterministic", "shuffled", "pct", "deterministic over asyncio"} <= names
    assert not any(each.name == "sleep(t), deterministic over asyncio" for each in report.outcomes)
    assert all(each.measured > 0 for each in report.outcomes)


def test_random_requests_to_two_profiles_are_measured():
    (fuzz,) = comparing.run(comparing.QUICK).outcomes
    assert fuzz.measured > 0
    assert fuzz.note.startswith(f"{comparing.QUICK.steps} steps in ")


@pytest.mark.slow
def test_looking_into_batches_is_measured_and_nasty_ones_take_several_turns():
    report = looking.run(looking.QUICK)
    assert all(each.measured > 0 for each in report.outcomes)
    turns = [each for each in report.outcomes if each.name.startswith("longest turn")]
    assert any(each.note != "1 turns" for each in turns)
    assert {each.unit for each in turns} == {"ms"}


@pytest.mark.slow
def test_a_simulated_run_is_measured_with_and_without_its_checks():
    rounds = {
        "checked": simulator.measured(simulator.fixed, 3),
        "unchecked": simulator.measured(simulator.unchecked, 3),
    }
    assert rounds["checked"]["steps"] == rounds["unchecked"]["steps"]
    assert rounds["checked"]["rows"] > rounds["unchecked"]["rows"]


@pytest.mark.slow
def test_the_look_at_every_page_is_measured_beside_the_opening():
    report = folders.run(folders.QUICK)
    assert len(report.outcomes) == len(folders.SHAPES)
    assert all(each.measured > 0 for each in report.outcomes)


def test_the_guard_is_measured_beside_the_codec():
    report = guard.run(guard.QUICK)
    assert [each.name for each in report.outcomes if each.target] == [
        "Metadata 12, 10,000 names",
        "Fetch 12, 19,997 partitions",
        "CreateTopics 7, 5,000 topics",
    ]
    assert all(each.details["codec"] > 0 for each in report.outcomes)


@pytest.mark.slow
def test_who_behaves_is_measured_beside_hostile_frames():
    report = fuzz.run(fuzz.QUICK)
    assert [each.met for each in report.outcomes] == [None, True, None]
    assert report.outcomes[2].measured > 0


@pytest.mark.slow
def test_a_failing_seed_is_made_smaller():
    report = shrinking.run(shrinking.QUICK)
    assert [each.name for each in report.outcomes][:2] == [
        "choices left, median",
        "seconds of CPU, median",
    ]
    # How much smaller depends on how fast the machine is.
    told = re.fullmatch(r"M01:(\d+)>(\d+)", report.outcomes[2].note)
    assert told is not None
    assert int(told[2]) < int(told[1])
    assert report.outcomes[2].measured > 1


@pytest.mark.slow
def test_every_figure_of_the_simulator_is_measured():
    report = simulator.run(simulator.QUICK)
    assert len(report.outcomes) == 9
    assert all(each.measured > 0 for each in report.outcomes[:-1])


@pytest.mark.nightly
def test_sweeps_and_judges_of_studies_are_measured_on_both_engines():
    need_spark()
    report = studies.run(studies.QUICK)
    assert len(report.outcomes) == 5
    assert all(each.measured > 0 for each in report.outcomes)


@pytest.mark.slow
def test_a_burst_costs_the_same_instructions_each_time_it_is_counted():
    first, second = (bursts.run(bursts.Plan(bursts=5)).outcomes for _ in range(2))
    assert [each.measured for each in first] == [each.measured for each in second]
    assert first[0].measured < first[1].measured < first[2].measured


@pytest.mark.slow
def test_a_request_is_followed_from_file_to_file():
    """Where a change makes it pass more of them, the walk in architecture.md is longer too."""
    found = {each.name: each.measured for each in moves.run(moves.QUICK).outcomes}
    assert found["files that hold its ticket, plain"] <= 10
    assert found["files that hold its ticket, idempotent"] <= 11
    assert 0 < found["moves between files, plain"] < found["moves between files, idempotent"] < 370
