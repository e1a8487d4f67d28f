"""librdkafka's rules, one by one, against brokers that answer as told (K-CLIENTS).

Ops are numbered as they are handed in, and so are the values that batches hold. `told` is what a
broker sees of a batch: values, epoch, base sequence.
"""

import pytest

from ottla.broker.errors import ErrorCode
from ottla.sim.clients.producer_librdkafka import LibrdkafkaProducer
from sim_fake_brokers import CONFIG, MS, FakeBrokers

OUT_OF_ORDER = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER
UNKNOWN = ErrorCode.UNKNOWN_PRODUCER_ID


def producer_of(brokers: FakeBrokers, ops: int = 0) -> LibrdkafkaProducer:
    """A producer that was handed ops 0, 1, 2... of partition 0."""
    producer = LibrdkafkaProducer(brokers.surroundings(), 1, brokers.config.acks)
    producer.start()
    for op in range(ops):
        producer.hand(op, 0)
    return producer


def with_config(ops: int = 0, **changes: object) -> tuple[FakeBrokers, LibrdkafkaProducer]:
    """Brokers under another configuration, and a producer."""
    brokers = FakeBrokers(CONFIG.with_(**changes))
    return brokers, producer_of(brokers, ops)


def finished(brokers: FakeBrokers, producer: LibrdkafkaProducer) -> list[object]:
    """How each op ended, once all have."""
    brokers.wait(lambda: producer.open_ops == 0)
    return list(brokers.ends())


# ---- batches and pipelines


def test_messages_wait_for_company_or_their_linger():
    brokers, producer = with_config(batch_records=3)
    brokers.run(20)
    producer.hand(0, 0)
    brokers.next().produced()  # connected
    brokers.run(20)
    handed = brokers.kernel.now
    for op in range(1, 5):
        producer.hand(op, 0)
    first, second = brokers.take(2)
    assert (first.values, second.values) == ([1, 2, 3], [4])
    assert [row.t_us - handed for row in brokers.rows("send")[1:]] == [0, 5 * MS]


def test_so_many_requests_are_in_flight_and_no_more():
    brokers, _ = with_config(ops=8, in_flight=3)
    asked = brokers.take(3)
    assert [each.told for each in asked] == [([n], 0, n) for n in range(3)]
    brokers.nothing_for(100)
    asked[0].produced()
    assert brokers.take(3)[-1].values == [3]


# ---- retries


@pytest.mark.parametrize(
    "error",
    [
        NOT_LEADER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
    ],
)
def test_a_retry_keeps_its_exact_range(error):
    brokers, producer = with_config(ops=1, batch_records=4)
    first = brokers.next()
    first.produced(error)
    producer.hand(1, 0)  # room for it would be in the batch, which is closed for good
    again = brokers.next()
    assert again.request == first.request
    again.produced(base=7)
    brokers.next().produced(base=8)
    assert finished(brokers, producer) == [("ok", 0, 7), ("ok", 1, 8)]


def test_nothing_leaves_until_what_is_in_flight_is_answered_and_then_all_of_it():
    brokers, _ = with_config(ops=4, in_flight=3)
    first, second, third = brokers.take(3)
    sent = [each.request for each in (first, second, third)]
    first.produced(NOT_LEADER)
    second.produced(NOT_LEADER)
    brokers.nothing_for(200)
    third.produced(NOT_LEADER)
    again = brokers.take(3)
    assert [each.request for each in again] == sent


def test_nothing_leaves_for_a_new_leader_before_the_old_one_has_answered():
    brokers, producer = with_config(ops=1)
    asked = brokers.next()
    brokers.leaders[0] = (2, 2)
    producer.view.hint(0, 2, 2)  # as its metadata may say at any time
    producer.hand(1, 0)
    brokers.nothing_for(200)
    asked.produced()
    found = brokers.next()
    assert (found.node, found.values) == (2, [1])


def test_it_does_not_take_hints():
    brokers, _ = with_config(ops=1)
    brokers.next().produced(NOT_LEADER, hint=(2, 9))
    assert brokers.next().node == 1


def test_only_some_retries_make_the_backoff_grow():
    brokers, _ = with_config(ops=1)
    for error in (NOT_LEADER, NOT_LEADER, *[ErrorCode.NOT_ENOUGH_REPLICAS] * 3):
        brokers.next().produced(error)
    brokers.next()
    refused = [row.t_us for row in brokers.rows("error")]
    sent = [row.t_us for row in brokers.rows("send")][1:]
    waits = [after - before for before, after in zip(refused, sent, strict=True)]
    assert waits == [50_000, 50_000, 50_000, 100_000, 200_000]


def test_what_goes_with_its_connection_comes_back_as_it_was():
    brokers, _ = with_config(ops=2)
    first, second = brokers.take(2)
    sent = [first.request, second.request]
    first.drop()
    assert [each.request for each in brokers.take(2)] == sent


def test_a_later_success_proves_that_what_went_unanswered_was_stored():
    brokers, producer = with_config(ops=2)
    first, second = brokers.take(2)
    first.produced(ErrorCode.REQUEST_TIMED_OUT)
    second.produced(base=1)
    assert finished(brokers, producer) == [("ok", 0, -1), ("ok", 1, 1)]
    brokers.nothing_for(1000)


# ---- epochs


def test_a_sequence_error_behind_a_failure_bumps_the_epoch_once_all_is_answered():
    brokers, _ = with_config(ops=3)
    first, second, third = brokers.take(3)
    first.produced(NOT_LEADER)
    second.produced(OUT_OF_ORDER)
    brokers.nothing_for(200)
    third.produced(OUT_OF_ORDER)
    assert [each.told for each in brokers.take(3)] == [([n], 1, n) for n in range(3)]


def test_a_refusal_for_good_fails_the_batch_and_numbers_the_rest_anew():
    brokers, producer = with_config(ops=3)
    for asked, error in zip(
        brokers.take(3), (ErrorCode.INVALID_RECORD, OUT_OF_ORDER, OUT_OF_ORDER), strict=True
    ):
        asked.produced(error)
    one, two = brokers.take(2)
    assert (one.told, two.told) == (([1], 1, 0), ([2], 1, 1))
    one.produced()
    two.produced(base=1)
    found = finished(brokers, producer)
    assert found == [("fail", 0, "INVALID_RECORD"), ("ok", 1, 0), ("ok", 2, 1)]


def test_a_producer_that_was_forgotten_bumps_the_epoch_once_all_is_answered():
    """Before KIP-360 a broker refused what it had forgotten."""
    brokers, producer = with_config(ops=2)
    first, second = brokers.take(2)
    first.produced(UNKNOWN)
    brokers.nothing_for(200)
    second.produced(UNKNOWN)
    assert [each.told for each in brokers.take(2)] == [([n], 1, n) for n in range(2)]
    assert not producer.failed


def test_a_bump_waits_for_all_partitions_and_concerns_all_of_them():
    """librdkafka#4953: what partition 1 had stored without an answer is stored twice then."""
    brokers = FakeBrokers(CONFIG.with_(partitions=2))
    brokers.leaders[1] = (2, 1)
    producer = producer_of(brokers)
    producer.hand(0, 0)
    producer.hand(1, 1)
    zero, one = sorted(brokers.take(2), key=lambda each: each.node)
    zero.produced(ErrorCode.INVALID_RECORD)
    brokers.run(5)
    producer.hand(2, 0)
    brokers.nothing_for(200)
    one.drop()  # stored or not, nobody knows
    again = sorted(brokers.take(2), key=lambda each: each.node)
    assert [each.told for each in again] == [([2], 1, 0), ([1], 1, 0)]


def test_a_partition_with_nothing_to_send_starts_the_new_epoch_when_it_has():
    brokers = FakeBrokers(CONFIG.with_(partitions=2))
    producer = producer_of(brokers)
    producer.hand(0, 1)
    brokers.next().produced()
    producer.hand(1, 0)
    brokers.next().produced(ErrorCode.INVALID_RECORD)
    brokers.run(5)
    producer.hand(2, 1)
    assert brokers.next().told == ([2], 1, 0)


def test_an_epoch_that_cannot_grow_wraps():
    brokers = FakeBrokers(CONFIG)
    brokers.ids = [(ErrorCode.NONE, 100, 32767)]
    producer = producer_of(brokers, 1)
    brokers.next().produced(ErrorCode.INVALID_RECORD)
    brokers.run(5)
    producer.hand(1, 0)
    assert brokers.next().told == ([1], 0, 0)


# ---- fatal


def test_who_was_forgotten_and_may_have_stored_it_is_at_its_end():
    brokers, producer = with_config(ops=1)
    brokers.next().drop()  # stored or not, nobody knows
    brokers.next().produced(UNKNOWN)
    assert finished(brokers, producer) == [("info", 0, "UNKNOWN_PRODUCER_ID")]
    assert producer.failed


def test_who_was_forgotten_after_another_refusal_is_at_its_end():
    brokers, producer = with_config(ops=1)
    brokers.next().produced(NOT_LEADER)
    brokers.next().produced(UNKNOWN)
    assert finished(brokers, producer) == [("info", 0, "UNKNOWN_PRODUCER_ID")]
    assert producer.failed


def test_a_sequence_error_at_the_head_of_the_line_is_the_end_of_it():
    brokers, producer = with_config(ops=4, in_flight=2)
    first, second = brokers.take(2)
    first.produced(OUT_OF_ORDER)
    brokers.run(5)
    assert producer.failed
    second.produced(base=0)
    assert finished(brokers, producer) == [
        ("fail", 2, "FATAL"),
        ("fail", 3, "FATAL"),
        ("fail", 0, "OUT_OF_ORDER_SEQUENCE_NUMBER"),
        ("ok", 1, 0),
    ]
    brokers.nothing_for(1000)


def test_what_comes_back_to_a_failed_producer_is_not_sent_again():
    brokers, producer = with_config(ops=2)
    first, second = brokers.take(2)
    first.produced(OUT_OF_ORDER)
    brokers.run(5)
    second.drop()
    assert finished(brokers, producer)[-1] == ("info", 1, "FATAL")
    brokers.nothing_for(1000)


def test_a_sequence_error_of_what_was_acknowledged_is_the_end_of_it():
    """The second was stored and the first by that proof; a third that is refused as a rewind..."""
    brokers, producer = with_config(ops=2)
    first, second = brokers.take(2)
    first.produced(ErrorCode.REQUEST_TIMED_OUT)
    second.produced(base=1)
    brokers.wait(lambda: producer.open_ops == 0)
    producer.hand(2, 0)
    brokers.next().produced(OUT_OF_ORDER)
    brokers.run(5)
    assert producer.failed


# ---- time runs out


def test_a_message_that_was_never_sent_expires_for_certain():
    brokers = FakeBrokers(CONFIG.with_(delivery_timeout_ms=1_000))
    brokers.leaders[0] = (0, -1)
    producer = producer_of(brokers, 1)
    assert finished(brokers, producer) == [("fail", 0, "EXPIRED")]
    assert brokers.ended()[0].t_us == 1_000_000


def test_what_expires_leaves_a_hole_and_calls_for_a_new_epoch():
    brokers, producer = with_config(ops=1, delivery_timeout_ms=1_000, request_timeout_ms=800)
    brokers.next()
    brokers.asked.clear()  # never answered: its connection goes, and it comes back
    brokers.run(850)
    producer.hand(1, 0)
    brokers.wait(lambda: bool(brokers.ended()))
    assert brokers.ends() == [("info", 0, "EXPIRED")]
    assert brokers.ended()[0].t_us <= 1_001_000
    brokers.wait(lambda: bool(brokers.asked) and brokers.asked[-1].told == ([1], 1, 0))


def test_a_request_has_no_more_time_than_its_messages():
    brokers, _ = with_config(ops=1, delivery_timeout_ms=1_000, request_timeout_ms=5_000)
    brokers.next()
    brokers.wait(lambda: bool(brokers.rows("close")))
    assert brokers.rows("close")[0].t_us == 1_000_000


# ---- plain


def test_without_idempotence_what_comes_back_goes_to_its_place_and_nothing_drains():
    brokers, producer = with_config(ops=3, idempotent=False, in_flight=2)
    first, second = brokers.take(2)
    assert first.batch.producer_id == -1
    first.produced(ErrorCode.NOT_ENOUGH_REPLICAS)
    brokers.run(80)
    assert [each.values for each in brokers.asked] == [[1], [0]]
    second.produced()
    assert brokers.take(2)[-1].values == [2]
    assert producer.open_ops == 2


@pytest.mark.parametrize("error", [OUT_OF_ORDER, ErrorCode.MESSAGE_TOO_LARGE])
def test_without_idempotence_a_refusal_is_a_failure_and_nothing_else(error):
    brokers, producer = with_config(ops=2, idempotent=False, batch_records=2)
    brokers.next().produced(error)
    assert finished(brokers, producer) == [("fail", 0, error.name), ("fail", 1, error.name)]
    producer.hand(2, 0)
    brokers.next().produced()


def test_with_acks_0_nothing_is_awaited():
    brokers, producer = with_config(ops=2, acks=0)
    brokers.take(2)
    assert finished(brokers, producer) == [("ok", 0, -1), ("ok", 1, -1)]
    assert producer.at_rest()


def test_a_crash_leaves_what_was_sent_unknown_and_what_was_not_certain():
    brokers, producer = with_config(ops=3, in_flight=1)
    brokers.next()
    producer.crash()
    assert brokers.ends() == [
        ("info", 0, "CRASHED"),
        ("fail", 1, "CRASHED"),
        ("fail", 2, "CRASHED"),
    ]
    brokers.nothing_for(5_000)
