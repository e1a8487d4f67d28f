"""How much memory a frame gets as it comes in: not what is announced, and not twice what came."""

import pytest

from broker_wire import api_versions, frame, run
from ottla.broker.wire.buffers import SPARE_BYTES
from ottla.broker.wire.receiving import (
    FIRST_BUFFER_BYTES,
    STEP_BYTES,
    WHOLE_FROM_BYTES,
    Receiving,
    room_for,
)

HUGE = 100 << 20


@pytest.mark.parametrize(
    ("at_hand", "size", "room"),
    [
        (4, 1000, 1000),
        (4, HUGE, FIRST_BUFFER_BYTES),
        (FIRST_BUFFER_BYTES, HUGE, 4 * FIRST_BUFFER_BYTES),
        (WHOLE_FROM_BYTES - 1, HUGE, 4 * WHOLE_FROM_BYTES - 4),
        (WHOLE_FROM_BYTES, HUGE, HUGE),
    ],
)
def test_a_buffer_grows_with_what_came_until_most_of_it_would_be_moved(at_hand, size, room):
    assert room_for(at_hand, size) == room


def test_large_produce_requests_behind_each_other_are_read_as_they_were_sent():
    """Their records are copied in later turns, when the next frame is being received."""
    size, count = 100_000, SPARE_BYTES // 100_000 + 5

    def produce(version):
        data = [{"index": n, "records": bytes([n]) * size} for n in range(count)]
        topics = [{"name": "t", "partition_data": data}]
        return frame(
            "produce", version, transactional_id=None, acks=-1, timeout=100, topic_data=topics
        )

    async def test(wire):
        raw = await wire.raw()
        raw.write(produce(9) + produce(8) + api_versions() + produce(12) + api_versions())
        for _ in range(5):
            assert len(await raw.frame()) > 0
        assert not wire.failures

    run(test)


@pytest.mark.parametrize("size", [SPARE_BYTES // 2, 3 * SPARE_BYTES])
def test_the_rest_of_a_large_frame_is_received_step_by_step(monkeypatch, size):
    """Sixty clients that sent large requests at once held up the loop for 105 ms: in one turn it
    received from each of them all that the sockets had."""
    asked, get_buffer = [], Receiving.get_buffer

    def noted(self, hint):
        buffer = get_buffer(self, hint)
        asked.append(len(buffer) if self._own is not None else 0)
        return buffer

    monkeypatch.setattr(Receiving, "get_buffer", noted)
    data = [{"index": 0, "records": bytes(size)}]
    topics = [{"name": "t", "partition_data": data}]

    async def test(wire):
        raw = await wire.raw()
        raw.write(
            frame("produce", 9, transactional_id=None, acks=-1, timeout=100, topic_data=topics)
        )
        assert len(await raw.frame()) > 0
        assert not wire.failures

    run(test)
    assert sum(asked) >= size / 2
    assert max(asked) == STEP_BYTES
