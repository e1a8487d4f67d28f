"""Produce to a node of its own: records looked into, times judged, over the wire and back.

What a batch may hold is in `tests/log/test_inspection.py` and `test_inspection_times.py`; here is
that each of it reaches the client as Apache Kafka 4.3.1 says it (K-CHECKS 18, K-CODES,
K-FIELDS, K-BATCHES), in every version, and that a refused batch stores nothing.
"""

import asyncio
import time

import pytest

import log_kit as kit
from ottla import Cluster, Topic
from ottla.broker.client import Client
from ottla.broker.errors import ErrorCode, RequestFailedError
from ottla.log.build import Codec, NewRecord, build_batch, seal
from ottla.log.record_batch import crc_matches

E = ErrorCode
HOUR = 3_600_000
FLAG = 8
REJECTED = "One or more records have been rejected due to invalid timestamp"
TOPICS = [
    Topic("plain"),
    Topic("narrow", configs={"message.timestamp.before.max.ms": "10000"}),
    Topic("stamped", configs={"message.timestamp.type": "LogAppendTime"}),
]


def wall_ms():
    return time.time_ns() // 1_000_000


def run(story, **settings):
    """`story(client)` with a client of a cluster of one node that has `TOPICS`."""

    async def main():
        async with Cluster(nodes=1, topics=TOPICS, **settings) as cluster:
            client = await Client.connect(*cluster.addresses[1])
            await asyncio.wait_for(story(client, cluster), 20)
            client.close()

    asyncio.run(main())


def at(*times, codec=Codec.NONE, **options):
    """A batch with a record for each time, the first of them its base."""
    records = [NewRecord(b"v", b"k", timestamp=each) for each in times]
    return build_batch(records, codec=codec, base_timestamp=times[0], **options)


async def produce(client, topic, batch, version=12, **options):
    answer = await client.send_batch(topic, 0, batch, version=version, **options)
    return answer.responses[0].partition_responses[0]


def millis(moment):
    """Of a time as the codec reads it: None for -1."""
    return -1 if moment is None else round(moment.timestamp() * 1000)


def faults(part):
    return [(each.batch_index, each.batch_index_error_message) for each in part.record_errors]


async def end(client, topic="plain"):
    return await client.list_offset(topic, 0)


@pytest.mark.parametrize("codec", list(Codec))
def test_each_record_at_fault_is_named_from_version_8_on(codec):
    async def story(client, _):
        now = wall_ms()
        batch = at(now, now + 2 * HOUR, now, now + 3 * HOUR, codec=codec)
        for version in range(3 if codec is not Codec.ZSTD else 7, 13):
            part = await produce(client, "plain", batch, version)
            assert (part.error_code, part.base_offset) == (E.INVALID_TIMESTAMP, -1)
            assert millis(part.log_append_time) == -1
            assert getattr(part, "log_start_offset", 0) == 0
            if version >= 8:
                assert part.error_message == REJECTED
                assert [number for number, _ in faults(part)] == [1, 3]
                text = faults(part)[1][1]
                told = f"Timestamp {now + 3 * HOUR} of message with offset 3 is out of range. "
                assert text.startswith(f"{told}The timestamp should be within [-92233")
        assert await end(client) == 0

    run(story)


def test_an_hour_ahead_is_the_limit():
    async def story(client, _):
        for ahead, error in [(HOUR - 2000, E.NONE), (HOUR + 2000, E.INVALID_TIMESTAMP)]:
            part = await produce(client, "plain", at(wall_ms() + ahead))
            assert part.error_code == error
        assert await end(client) == 1

    run(story)


def test_a_topics_own_limit():
    async def story(client, _):
        for ago, error in [(8_000, E.NONE), (12_000, E.INVALID_TIMESTAMP)]:
            part = await produce(client, "narrow", at(wall_ms() - ago))
            assert part.error_code == error

    run(story)


def test_one_partition_at_fault_leaves_the_others_alone():
    async def story(client, _):
        now = wall_ms()
        bad, good = at(now + 2 * HOUR), at(now)
        answer = await client.call(
            "produce",
            12,
            transactional_id=None,
            acks=-1,
            timeout=5000,
            topic_data=[
                {"name": name, "partition_data": [{"index": 0, "records": records}]}
                for name, records in [("plain", bad), ("narrow", good)]
            ],
        )
        parts = {each.name: each.partition_responses[0] for each in answer.responses}
        assert parts["plain"].error_message == REJECTED
        assert [number for number, _ in faults(parts["plain"])] == [0]
        assert (parts["narrow"].error_code, faults(parts["narrow"])) == (E.NONE, [])

    run(story)


def test_without_an_answer_the_connection_closes():
    async def story(client, _):
        await client.send_batch("plain", 0, at(wall_ms() + 2 * HOUR), acks=0)
        await client.closed

    run(story)


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("flag", [0, FLAG])
def test_a_header_that_does_not_tell_the_truth_is_corrected(codec, flag):
    """The flag is the broker's: it is cleared, and the header's time stands for every record."""

    async def story(client, _):
        now = wall_ms()
        sent = at(now - 5000, codec=codec, attributes=flag)
        lying = seal(sent[:35] + now.to_bytes(8, "big") + sent[43:])
        assert (await produce(client, "plain", lying)).error_code == E.NONE
        (found,) = (await client.fetch("plain", 0, 0)).batches
        assert (found.attributes, found.base_timestamp) == (codec, now - 5000)
        assert found.max_timestamp == (now if flag else now - 5000)
        assert crc_matches(found)
        assert found.data[61:] == sent[61:]

    run(story)


@pytest.mark.parametrize("codec", list(Codec))
def test_a_stamped_topic_gives_every_batch_the_brokers_time(codec):
    async def story(client, _):
        before = wall_ms()
        sent = at(before - 9 * HOUR, before + 9 * HOUR, codec=codec)
        answers = [await produce(client, "stamped", sent) for _ in range(3)]
        after = wall_ms()
        times = [millis(each.log_append_time) for each in answers]
        assert [before, *times, after] == sorted([before, *times, after])
        found = (await client.fetch("stamped", 0, 0)).batches
        assert [each.max_timestamp for each in found] == times
        for each in found:
            assert (each.attributes, each.base_timestamp) == (codec | FLAG, before - 9 * HOUR)
            assert crc_matches(each)
            assert each.data[61:] == sent[61:]

    run(story)


def test_nobody_else_may_set_the_flag_of_a_stamped_topic():
    async def story(client, _):
        now = wall_ms()
        part = await produce(client, "stamped", at(now, now, attributes=FLAG))
        assert (part.error_code, part.error_message) == (E.INVALID_TIMESTAMP, REJECTED)
        assert [number for number, _ in faults(part)] == [0, 1]
        assert await end(client, "stamped") == 0

    run(story)


@pytest.mark.parametrize(("topic", "stamped"), [("plain", False), ("stamped", True)])
def test_a_duplicate_is_answered_with_the_time_that_is_stored(topic, stamped):
    """Also on topics whose time is the producer's, and whatever the copy says (K-FIELDS)."""

    async def story(client, _):
        identity = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
        now = wall_ms()
        first = await produce(client, topic, at(now - 1000, **identity))
        copy = await produce(client, topic, at(now - 2000, **identity))
        assert (first.base_offset, copy.base_offset) == (0, 0)
        time_of_first = millis(first.log_append_time)
        assert (time_of_first >= now) if stamped else (time_of_first == -1)
        assert millis(copy.log_append_time) == (time_of_first if stamped else now - 1000)

    run(story)


def test_a_copy_whose_time_is_out_of_range_is_no_duplicate():
    """Validation precedes the duplicate window (K-CHECKS)."""

    async def story(client, _):
        identity = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
        for ahead, error in [(0, E.NONE), (2 * HOUR, E.INVALID_TIMESTAMP), (0, E.NONE)]:
            part = await produce(client, "plain", at(wall_ms() + ahead, **identity))
            assert part.error_code == error

    run(story)


BROKEN = [
    (Codec.NONE, b"\0" * 20, E.INVALID_RECORD),
    (Codec.GZIP, b"\0" * 20, E.UNKNOWN_SERVER_ERROR),
    (Codec.SNAPPY, b"", E.UNKNOWN_SERVER_ERROR),
    (Codec.LZ4, b"junk", E.UNKNOWN_SERVER_ERROR),
    (Codec.ZSTD, b"junk", E.UNKNOWN_SERVER_ERROR),
    (Codec.ZSTD, b"", E.INVALID_RECORD),
]


@pytest.mark.parametrize(("codec", "payload", "error"), BROKEN)
def test_records_that_are_no_records_have_a_code_and_no_words(codec, payload, error):
    async def story(client, _):
        data = build_batch([b"v"], codec=codec)[:61] + payload
        data = data[:8] + (len(data) - 12).to_bytes(4, "big") + data[12:]
        for version in (7, 12):
            part = await produce(client, "plain", seal(data), version)
            assert (part.error_code, part.base_offset, part.log_start_offset) == (error, -1, 0)
            if version >= 8:
                assert (part.error_message, faults(part)) == (None, [])
        assert await end(client) == 0

    run(story)


def test_who_embeds_the_broker_is_told_in_words():
    async def story(_, cluster):
        batch = at(wall_ms() + 2 * HOUR)
        with pytest.raises(RequestFailedError, match="INVALID_TIMESTAMP: Timestamp") as refused:
            await cluster.replicate_in_stages("plain", 0, batch).replicated
        assert refused.value.definite

    run(story)


@pytest.mark.parametrize("count", [1, 8, 9, 17, 64, 65, 1000, 20_000])
def test_however_many_records_a_batch_holds_they_are_looked_into(count):
    """Batches of nine records and more were believed: Sarama's -1 hid them from ListOffsets."""

    async def story(client, _):
        now = wall_ms() - HOUR
        records = [NewRecord(b"v", b"k", timestamp=now + n) for n in range(count)]
        sound = build_batch(records, base_timestamp=now)
        broken = seal(sound[:61] + bytes(reversed(sound[61:])))
        assert (await produce(client, "plain", broken)).error_code == E.INVALID_RECORD
        told = await produce(client, "plain", kit.with_header(sound, max_timestamp=-1))
        assert (told.error_code, told.base_offset) == (E.NONE, 0)
        assert await client.list_offset("plain", 0, -3) == count - 1
        assert await client.list_offset("plain", 0, now + count // 2) == count // 2

    run(story)
