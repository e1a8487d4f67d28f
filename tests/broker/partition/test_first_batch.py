"""A producer's first batch is refused or lost, its second one arrives: what then?

A client that keeps several batches in flight takes the success of a later one as proof of the
earlier ones (librdkafka: *implicit ack*), so a broker that stores sequence n of a producer whose
sequence 0 it never stored makes the client report records that are nowhere: "lost message" as
promise-K4 means it. This is KAFKA-15591 (and KAFKA-14312, KAFKA-19880; K-RULES 5).

A broker may accept an unknown producer at any sequence for one reason only: it knew the producer
and has forgotten it (KIP-360). Here forgetting is a decision in the log, so a replica knows whether
that can be the case. Profile `reference-strict` asks for it, `reference` does not.
"""

from __future__ import annotations

from random import Random

import pytest

from broker_core_nemesis import Story, wander
from broker_core_partition import (
    ELSEWHERE,
    EXPIRY,
    GAP,
    LAG,
    NONE,
    PartitionDriver,
    make_partition,
    outcome,
)
from broker_core_world import Options
from ottla.broker.errors import ErrorCode

SOON = 1000
PROFILES = ("reference", "reference-strict")


def not_leading_yet(driver):
    first = driver.produce(7, 0, 5)
    driver.serve()
    return first


def while_handing_over(driver):
    driver.serve()
    first = driver.produce(7, 0, 5)
    driver.propose(refuse=True)
    return first


def before_it_was_synced(driver):
    driver.lead(1)
    first = driver.produce(7, 0, 5, within=SOON)
    driver.sleep(SOON)
    driver.commit()
    return first


def below_the_minimum(driver):
    driver.serve()
    driver.sleep(LAG + 1)
    first = driver.produce(7, 0, 5)
    driver.hear_followers()
    return first


REFUSALS = [not_leading_yet, while_handing_over, before_it_was_synced, below_the_minimum]


@pytest.mark.parametrize("refuse_first", REFUSALS)
def test_strict_the_second_batch_is_not_stored_after_the_first_was_refused(refuse_first):
    driver = PartitionDriver(make_partition(min_insync=2, profile="reference-strict"))
    first = refuse_first(driver)
    assert first.error in (ELSEWHERE, ErrorCode.NOT_ENOUGH_REPLICAS)
    second = driver.produce(7, 5)
    driver.barrier(confirmed=True)
    driver.settle()
    assert driver.stored() == [], "the second batch is stored without the first"
    assert outcome(second)[0] is GAP


@pytest.mark.parametrize("refuse_first", REFUSALS)
def test_reference_stores_the_second_batch_and_the_first_can_never_follow(refuse_first):
    """The known hole, as Kafka 4.3.1 has it (docs/decisions/0012-unknown-producers.md)."""
    driver = PartitionDriver(make_partition(min_insync=2, profile="reference"))
    refuse_first(driver)
    second = driver.produce(7, 5)
    driver.settle()
    assert outcome(second) == (NONE, 0)
    again = driver.produce(7, 0, 5)
    driver.barrier(confirmed=True)
    driver.settle()
    assert outcome(again)[0] is GAP
    assert driver.ranges() == [(7, 5)]


def test_strict_nor_where_other_producers_have_written_before():
    driver = PartitionDriver(make_partition(profile="reference-strict"))
    driver.serve()
    driver.produce(8, 0)
    driver.settle()
    second = driver.produce(7, 5)
    driver.barrier(confirmed=True)
    driver.settle()
    assert driver.ranges() == [(8, 0)]
    assert outcome(second)[0] is GAP


@pytest.mark.parametrize("profile", PROFILES)
def test_who_was_forgotten_may_resume(profile):
    driver = PartitionDriver(make_partition(profile=profile))
    driver.serve()
    driver.produce(7, 0, 5)
    driver.settle()
    driver.sleep(2 * EXPIRY)
    driver.settle()
    resumed = driver.produce(7, 5)
    driver.settle()
    assert driver.machine.table.forgotten, "the producer did not expire"
    assert outcome(resumed) == (NONE, 5)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("refuse_first", REFUSALS)
def test_the_first_batch_tried_again_is_stored_at_the_beginning(refuse_first, profile):
    driver = PartitionDriver(make_partition(min_insync=2, profile=profile))
    refuse_first(driver)
    again, second = driver.produce(7, 0, 5), driver.produce(7, 5)
    driver.settle()
    assert (outcome(again), outcome(second)) == ((NONE, 0), (NONE, 5))


def refusals_in_random_lives(profile):
    """What producers with five in flight from the first batch on were refused though they do
    everything right; `broker_core_clients` says what a careful producer avoids."""
    for seed in range(10, 40):
        story = Story(seed, Options(profile=profile), careful=False)
        wander(story, Random(seed), 100)
        story.world.heal()
        story.world.kernel.run(2_000_000)
        for producer in story.producers:
            yield from producer.refused


@pytest.mark.slow
def test_strict_producers_with_five_in_flight_from_the_first_batch_on_lose_nothing():
    refused = next(refusals_in_random_lives("reference-strict"), None)
    assert refused is None, refused


@pytest.mark.slow
def test_reference_refuses_such_a_producer_for_good():
    """The known hole: its first batch, which it may no longer send, or hold for delivered."""
    assert "/0: OUT_OF_ORDER_SEQUENCE_NUMBER" in next(refusals_in_random_lives("reference"), "")
