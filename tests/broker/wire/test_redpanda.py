"""What the profiles of Redpanda do on a connection: its first stage, bare answers, acks, twins."""

from __future__ import annotations

import pytest

from broker_wire import api_versions, default_host, produce_frame, run
from broker_wire_produce import GOOD, ends, errors, request
from ottla.broker.errors import ErrorCode
from ottla.broker.wire.api.produce_answers import LEAST_OFFSET
from ottla.log.build import build_batch

E = ErrorCode
PROFILE = "redpanda-24.3"
OF_PRODUCER = build_batch([b"v"], producer_id=7, producer_epoch=0, base_sequence=0)


def host(**settings):
    return default_host(profile=PROFILE, **settings)


@pytest.mark.parametrize("placed", [True, False], ids=["placed", "answered"])
def test_the_next_request_begins_when_all_batches_have_their_places_or_outcomes(placed):
    async def test(wire):
        raw = await wire.raw()
        raw.write(produce_frame() * 2 + api_versions())
        for number in (1, 2):
            while wire.host.submitted < number:
                await wire.tick()
            for _ in range(5):
                await wire.tick()
            assert wire.host.submitted == number
            ticket = wire.host.held[-1]
            if placed:
                ticket.on_enqueued(ticket)
            else:
                wire.host.complete(ticket)
        for ticket in list(wire.host.held):
            wire.host.complete(ticket)
        for _ in range(3):
            await raw.frame()

    run(test, host(hold=True))


def test_an_answer_has_no_more_than_its_base_offset():
    async def test(wire):
        client = await wire.client()
        answer = await request(client, ("t", 0, GOOD), ("gone", 0, GOOD), version=9)
        parts = [each for topic in answer.responses for each in topic.partition_responses]
        assert [each.base_offset for each in parts] == [0, LEAST_OFFSET]
        assert {each.log_start_offset for each in parts} == {-1}
        assert {each.log_append_time for each in parts} == {None}

    run(test, host())


def test_wrong_acks_fail_a_request_first_of_all_if_it_has_no_producer():
    async def test(wire):
        client = await wire.client()
        refused = await request(client, ("gone", 0, GOOD), ("t", 0, GOOD), acks=2)
        assert set(errors(refused).values()) == {E.INVALID_REQUIRED_ACKS}

    run(test, host())


def test_wrong_acks_of_a_producer_close_its_connection():
    async def test(wire):
        raw = await wire.raw()
        raw.write(produce_frame(records=OF_PRODUCER, acks=2))
        assert await raw.is_closed()
        assert ends(wire.host) == [0, 0, 0]

    run(test, host())


def test_both_batches_for_a_partition_are_stored_and_answered():
    async def test(wire):
        client = await wire.client()
        two = build_batch([b"v", b"w"])
        answer = await request(client, ("t", 0, GOOD), ("t", 0, two))
        offsets = [
            each.base_offset for topic in answer.responses for each in topic.partition_responses
        ]
        assert offsets == [0, 1]
        assert ends(wire.host) == [3, 0, 0]

    run(test, host())
