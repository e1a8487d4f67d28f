"""The Java producer's rules, one by one, against brokers that answer as told (K-CLIENTS).

Ops are numbered as they are handed in, and so are the values that batches hold. `told` is what a
broker sees of a batch: values, epoch, base sequence.
"""

import pytest

from ottla.broker.errors import ErrorCode
from ottla.sim.clients.producer_java import JavaProducer
from sim_fake_brokers import CONFIG, MS, FakeBrokers

SECOND = 1_000


def producer_of(brokers: FakeBrokers, ops: int = 0) -> JavaProducer:
    """A producer that was handed ops 0, 1, 2... of partition 0."""
    producer = JavaProducer(brokers.surroundings(), 1, brokers.config.acks)
    producer.start()
    for op in range(ops):
        producer.hand(op, 0)
    return producer


def with_config(ops: int = 0, **changes: object) -> tuple[FakeBrokers, JavaProducer]:
    """Brokers under another configuration, and a producer."""
    brokers = FakeBrokers(CONFIG.with_(**changes))
    return brokers, producer_of(brokers, ops)


# ---- batches and pipelines


def test_a_batch_leaves_when_it_is_full_or_its_linger_is_over():
    brokers, producer = with_config(batch_records=3)
    brokers.run(20)  # it knows the cluster, and is connected
    handed = brokers.kernel.now
    for op in range(4):
        producer.hand(op, 0)
    first, second = brokers.take(2)
    assert (first.values, second.values) == ([0, 1, 2], [3])
    assert [row.t_us - handed for row in brokers.rows("send")] == [0, 5 * MS]


def test_so_many_requests_are_in_flight_and_no_more():
    brokers, _ = with_config(ops=8, in_flight=3)
    asked = brokers.take(3)
    assert [each.told for each in asked] == [([n], 0, n) for n in range(3)]
    brokers.nothing_for(100)
    asked[0].produced()
    assert brokers.take(3)[-1].values == [3]


def test_one_request_takes_a_batch_of_each_partition_of_its_node():
    brokers = FakeBrokers(CONFIG.with_(partitions=3))
    brokers.leaders[2] = (2, 1)
    producer = producer_of(brokers)
    for op, partition in enumerate((0, 1, 2, 0)):
        producer.hand(op, partition)
    asked = brokers.take(3)
    found = {(each.node, tuple(each.batches)) for each in asked}
    assert found == {(1, (0, 1)), (1, (0,)), (2, (2,))}
    for each in asked:
        assert {batch.base_sequence for batch in each.batches.values()} <= {0, 1}


def test_acknowledged_ops_are_told_their_offsets():
    brokers, producer = with_config(ops=3, batch_records=3)
    brokers.next().produced(base=40)
    brokers.wait(lambda: producer.open_ops == 0)
    assert brokers.ends() == [("ok", 0, 40), ("ok", 1, 41), ("ok", 2, 42)]


# ---- retries


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
    ],
)
def test_a_retry_is_the_same_batch(error):
    brokers, producer = with_config(ops=1)
    first = brokers.next()
    first.produced(error)
    again = brokers.next()
    assert again.request == first.request
    again.produced(base=7)
    brokers.wait(lambda: producer.open_ops == 0)
    assert brokers.ends() == [("ok", 0, 7)]
    assert [row.code for row in brokers.rows("error")] == [error.name]
    assert [row.aux for row in brokers.rows("send")] == [1, 2]


def test_after_trouble_only_the_lowest_sequence_travels_until_it_is_acknowledged():
    brokers, producer = with_config(ops=4, in_flight=3)
    for asked in brokers.take(3):
        asked.produced(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    for sequence in range(3):
        asked = brokers.next()
        assert asked.told == ([sequence], 0, sequence)
        brokers.nothing_for(10)
        asked.produced(base=sequence)
    brokers.next().produced(base=3)
    brokers.wait(lambda: producer.open_ops == 0)
    assert [row.op for row in brokers.rows("ok")] == [0, 1, 2, 3]


def test_what_comes_back_later_may_still_be_the_first_to_leave():
    brokers, _ = with_config(ops=2)
    first, second = brokers.take(2)
    first.produced(ErrorCode.NOT_LEADER_OR_FOLLOWER, hint=(2, 2))
    brokers.run(5)
    again = brokers.asked[-1]
    assert (again.node, again.told) == (2, ([0], 0, 0))
    second.produced(ErrorCode.NOT_LEADER_OR_FOLLOWER, hint=(2, 2))
    brokers.run(5)
    assert list(brokers.asked) == [again], "the second must wait for the first"
    again.drop()
    assert brokers.next().told == ([0], 0, 0)


def test_the_backoff_grows_and_a_new_leader_is_tried_at_once():
    brokers, _ = with_config(ops=1)
    for _ in range(3):
        brokers.next().produced(ErrorCode.NOT_ENOUGH_REPLICAS)
    brokers.next().produced(ErrorCode.NOT_LEADER_OR_FOLLOWER, hint=(3, 9))
    assert brokers.next().node == 3
    refused = [row.t_us for row in brokers.rows("error")]
    sent = [row.t_us for row in brokers.rows("send")][1:]
    waits = [after - before for before, after in zip(refused, sent, strict=True)]
    assert waits[:3] == [50_000, 100_000, 200_000]
    assert waits[3] <= 1_000  # to connect


def test_a_hint_that_is_old_news_is_not_believed():
    brokers = FakeBrokers()
    brokers.leaders[0] = (1, 5)
    producer_of(brokers, 1)
    brokers.next().produced(ErrorCode.NOT_LEADER_OR_FOLLOWER, hint=(2, 4))
    assert brokers.next().node == 1


def test_a_broken_connection_costs_a_retry_of_the_same_batches():
    brokers, _ = with_config(ops=2)
    first, second = brokers.take(2)
    sent = [first.request, second.request]
    first.drop()
    again = [brokers.next()]
    again[0].produced()
    again.append(brokers.next())
    assert [each.request for each in again] == sent
    assert [row.code for row in brokers.rows("error")] == ["DISCONNECTED"] * 2


def test_a_request_without_an_answer_takes_its_connection_with_it():
    brokers, _ = with_config(ops=1, request_timeout_ms=300)
    first = brokers.next()
    sent = brokers.rows("send")[0].t_us
    connection = first.connection
    brokers.run(310)
    assert not connection.open
    (close,) = brokers.rows("close")
    assert (close.code, close.node, close.t_us - sent) == ("request timeout", 1, 300_000)
    assert [row.code for row in brokers.rows("error")] == ["TIMED_OUT"]


# ---- sequences and epochs


def test_a_sequence_error_behind_a_failed_batch_is_retried_without_a_bump():
    brokers, _ = with_config(ops=2)
    first, second = brokers.take(2)
    first.produced(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    second.produced(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    again = brokers.next()
    assert again.told == ([0], 0, 0)
    again.produced()
    assert brokers.next().told == ([1], 0, 1)


def test_a_sequence_error_of_what_is_expected_next_starts_a_new_epoch():
    brokers, _ = with_config(ops=3, in_flight=1)
    brokers.next().produced()
    brokers.next().produced(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    asked = brokers.next()
    assert asked.told == ([1], 1, 0)
    asked.produced()
    assert brokers.next().told == ([2], 1, 1)


@pytest.mark.parametrize(("log_start", "epoch", "seq"), [(0, 1, 0), (-1, 0, 1)])
def test_who_was_forgotten_begins_an_epoch_if_the_log_start_is_told(log_start, epoch, seq):
    """Before KIP-360 a broker refused whom it had forgotten; two refusals are one new epoch."""
    brokers, _ = with_config(ops=3)
    no = ErrorCode.UNKNOWN_PRODUCER_ID
    for asked, error in zip(brokers.take(3), (ErrorCode.NONE, no, no), strict=True):
        asked.produced(error, log_start=log_start)
    asked = brokers.next()
    assert asked.told == ([1], epoch, seq)
    asked.produced()
    assert brokers.next().told == ([2], epoch, seq + 1)


def test_a_refusal_for_good_fails_the_batch_and_numbers_the_rest_of_its_partition_anew():
    brokers, producer = with_config(ops=3)
    first, second, third = brokers.take(3)
    first.produced(ErrorCode.INVALID_RECORD)
    second.produced(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    third.produced(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    asked = brokers.next()
    assert asked.told == ([1], 1, 0)
    asked.produced()
    asked = brokers.next()
    assert asked.told == ([2], 1, 1)
    asked.produced(base=1)
    brokers.wait(lambda: producer.open_ops == 0)
    assert brokers.ends() == [("fail", 0, "INVALID_RECORD"), ("ok", 1, 0), ("ok", 2, 1)]


def test_a_refusal_after_an_attempt_that_may_be_stored_is_no_certain_failure():
    brokers, producer = with_config(ops=1)
    brokers.next().drop()
    brokers.next().produced(ErrorCode.INVALID_RECORD)
    brokers.wait(lambda: producer.open_ops == 0)
    assert brokers.ends() == [("info", 0, "INVALID_RECORD")]


def test_another_partition_follows_into_the_new_epoch_when_nothing_of_it_is_in_flight():
    brokers = FakeBrokers(CONFIG.with_(partitions=2))
    brokers.leaders[1] = (2, 1)
    producer = producer_of(brokers)
    producer.hand(0, 0)
    producer.hand(1, 1)
    zero, one = sorted(brokers.take(2), key=lambda each: each.node)
    zero.produced(ErrorCode.INVALID_RECORD)
    brokers.run(5)
    producer.hand(2, 1)
    producer.hand(3, 0)
    brokers.wait(lambda: len(brokers.asked) == 2)
    assert brokers.asked[-1].told == ([3], 1, 0)
    brokers.nothing_for(20)  # op 2 must not overtake op 1, which is of the old epoch
    one.produced()
    brokers.run(5)
    assert brokers.asked[-1].told == ([2], 1, 0)


def test_an_epoch_that_cannot_grow_asks_for_a_new_id():
    brokers = FakeBrokers(CONFIG)
    brokers.ids = [(ErrorCode.NONE, 100, 32767), (ErrorCode.NONE, 101, 0)]
    producer_of(brokers, 2)
    first, second = brokers.take(2)
    first.produced(ErrorCode.INVALID_RECORD)
    second.produced(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    again = brokers.next()
    assert (again.batch.producer_id, again.batch.base_sequence) == (101, 0)


def test_ids_are_asked_for_until_there_is_one():
    brokers = FakeBrokers(CONFIG)
    brokers.ids[:2] = [(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, -1, -1)] * 2
    producer_of(brokers, 1)
    assert brokers.next().batch.producer_id == 102
    assert brokers.id_requests == 3
    times = [row.t_us for row in brokers.rows("error")]
    assert times[1] - times[0] == 51_000  # the backoff and a round trip


# ---- time runs out


def test_a_batch_that_was_never_sent_expires_for_certain():
    brokers = FakeBrokers(CONFIG.with_(delivery_timeout_ms=1 * SECOND))
    brokers.leaders[0] = (0, -1)
    producer_of(brokers, 1)
    brokers.run(2 * SECOND)
    assert brokers.ends() == [("fail", 0, "EXPIRED")]
    assert brokers.ended()[0].t_us == 1_000_000


@pytest.mark.parametrize(
    ("stored", "found"),
    [(True, ([2], 0, 2)), (False, ([1], 1, 0)), (None, ([2], 1, 0))],
    ids=["the hole was filled", "it was not", "nobody knows"],
)
def test_a_batch_whose_fate_is_unknown_expires_as_such_and_leaves_a_hole(stored, found):
    """Nothing new leaves until what is in flight is through; then the epoch may be bumped."""
    brokers, producer = with_config(ops=1, delivery_timeout_ms=1 * SECOND, request_timeout_ms=600)
    brokers.run(500)
    producer.hand(1, 0)
    brokers.take(2)
    brokers.asked.clear()  # neither is ever answered: the connection goes, both come back
    brokers.wait(lambda: bool(brokers.ended()))
    assert brokers.ends() == [("info", 0, "EXPIRED")]
    producer.hand(2, 0)
    zero, one = brokers.take(2)
    assert (zero.told, one.told) == (([0], 0, 0), ([1], 0, 1))
    brokers.nothing_for(50)
    brokers.asked.clear()
    if stored is not None:
        no = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        zero.produced(ErrorCode.NONE if stored else ErrorCode.NOT_LEADER_OR_FOLLOWER)
        one.produced(ErrorCode.NONE if stored else no, base=1)
    while (asked := brokers.next()).told != found:
        assert asked.told == ([1], 0, 1), "nothing else may leave before"
        brokers.asked.clear()


# ---- the rest


def test_a_batch_that_is_too_large_is_split_and_keeps_its_sequences():
    brokers, producer = with_config(ops=5, batch_records=5)
    brokers.next().produced(ErrorCode.MESSAGE_TOO_LARGE)
    first = brokers.next()
    assert first.told == ([0, 1, 2], 0, 0)
    brokers.nothing_for(10)
    first.produced()
    second = brokers.next()
    assert second.told == ([3, 4], 0, 3)
    second.produced(base=3)
    brokers.wait(lambda: producer.open_ops == 0)
    assert [row.off for row in brokers.rows("ok")] == [0, 1, 2, 3, 4]


def test_a_single_record_that_is_too_large_fails():
    brokers, producer = with_config(ops=1)
    brokers.next().produced(ErrorCode.MESSAGE_TOO_LARGE)
    brokers.wait(lambda: producer.open_ops == 0)
    assert brokers.ends() == [("fail", 0, "MESSAGE_TOO_LARGE")]


def test_with_acks_0_nothing_is_awaited_and_the_connection_stays_usable():
    brokers, producer = with_config(ops=2, acks=0)
    for asked in brokers.take(2):
        assert (asked.request.acks, asked.batch.producer_id) == (0, -1)
    assert brokers.ends() == [("ok", 0, -1), ("ok", 1, -1)]
    producer.hand(2, 0)
    assert brokers.take(3)[-1].values == [2]
    assert producer.at_rest()
    assert brokers.rows("close") == []


@pytest.mark.parametrize(("idempotent", "orders"), [(False, [[1], [0]]), (True, [[0], [1]])])
def test_two_that_come_back_change_places_without_idempotence(idempotent, orders):
    brokers, _ = with_config(ops=2, idempotent=idempotent)
    first, _second = brokers.take(2)
    first.drop()
    found = [brokers.next()]
    found[0].produced()
    found.append(brokers.next())
    assert [each.values for each in found] == orders


def test_with_one_in_flight_a_plain_producer_keeps_its_order_over_a_change_of_leaders():
    brokers, producer = with_config(ops=2, idempotent=False, in_flight=1)
    asked = brokers.next()
    brokers.leaders[0] = (2, 2)
    producer.view.hint(0, 2, 2)
    producer.wake()
    brokers.nothing_for(20)  # the second must not overtake the first
    asked.produced()
    again = brokers.next()
    assert (again.node, again.values) == (2, [1])


def test_a_crash_leaves_what_was_sent_unknown_and_what_was_not_certain():
    brokers, producer = with_config(ops=3, in_flight=1)
    brokers.next()
    producer.crash()
    assert brokers.ends() == [
        ("info", 0, "CRASHED"),
        ("fail", 1, "CRASHED"),
        ("fail", 2, "CRASHED"),
    ]
    brokers.nothing_for(5 * SECOND)
