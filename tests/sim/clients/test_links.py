"""Connections and metadata of the simulator's clients: correlation, patience, what is believed.

Brokers answer as told (`sim_fake_brokers`); the client is a Java producer wherever any would do.
Paths take half a millisecond each way, so a round trip is one.
"""

from itertools import pairwise

import pytest

from ottla.broker.errors import ErrorCode
from ottla.broker.wire.answers import (
    MetadataAnswer,
    PartitionProduced,
    ProduceAnswer,
    TopicProduced,
)
from ottla.broker.wire.requests import ApiVersionsRequest
from ottla.sim.chance.choices import Tape
from ottla.sim.clients.link import ProtocolViolation
from ottla.sim.clients.producer_java import JavaProducer
from ottla.sim.world.frames import TOPIC, Frame, produce
from sim_fake_brokers import CONFIG, MS, FakeBrokers


def client_of(brokers: FakeBrokers, ops: int = 0) -> JavaProducer:
    """A client at work, with ops of partition 0 in hand."""
    client = JavaProducer(brokers.surroundings(), 7, brokers.config.acks)
    client.start()
    for op in range(ops):
        client.hand(op, 0)
    return client


def produced(number: int, *partitions: int) -> Frame:
    """An answer about these partitions."""
    parts = [PartitionProduced(each, ErrorCode.NONE, 0, log_start_offset=0) for each in partitions]
    return Frame(number, ProduceAnswer((TopicProduced(TOPIC, parts),)))


# ---- correlation


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (lambda number: produced(number + 1, 0), "expected ProduceAnswer"),
        (lambda number: produced(number - 1, 0), "expected ProduceAnswer"),
        (lambda number: Frame(number, MetadataAnswer(())), "answered MetadataAnswer"),
        (lambda number: produced(number, 1), "asked about [0]"),
        (produced, "asked about [0]"),
        (lambda number: produced(number, 0, 0), "asked about [0]"),
    ],
    ids=["too new", "too old", "another kind", "another partition", "no partition", "twice"],
)
def test_an_answer_to_something_else_ends_the_run(answer, told):
    brokers = FakeBrokers()
    client_of(brokers, 1)
    asked = brokers.next()
    asked.connection.answer(answer(asked.number))
    with pytest.raises(ProtocolViolation, match=r"client 7, node 1"):
        brokers.run(5)
    (row,) = brokers.rows("error")
    assert (row.client, row.node) == (7, 1)
    assert told in (row.code or "")


def test_an_answer_out_of_order_ends_the_run():
    brokers = FakeBrokers()
    client_of(brokers, 2)
    _, second = brokers.take(2)
    second.connection.answer(produced(second.number, 0))
    with pytest.raises(ProtocolViolation):
        brokers.run(5)


def test_an_answer_to_a_request_with_acks_0_ends_the_run():
    brokers = FakeBrokers(CONFIG.with_(acks=0))
    client_of(brokers, 1)
    asked = brokers.next()
    asked.connection.answer(produced(asked.number, 0))
    with pytest.raises(ProtocolViolation, match="expected nothing"):
        brokers.run(5)


# ---- connecting


def test_a_node_that_is_down_is_left_alone_twice_as_long_each_time():
    brokers = FakeBrokers(CONFIG, nodes=(1,))
    brokers.down = [1]
    client_of(brokers)
    brokers.run(3_000)
    closed = [row.t_us for row in brokers.rows("close")]
    assert {row.code for row in brokers.rows("close")} == {"refused"}
    waits = [after - before - MS for before, after in pairwise(closed)]
    assert waits[:4] == [50 * MS, 100 * MS, 200 * MS, 400 * MS]
    assert max(waits) <= 1_000 * MS


def test_any_node_will_do_to_begin_with():
    brokers = FakeBrokers()
    brokers.down = [1, 2]
    brokers.leaders[0] = (3, 1)
    client_of(brokers, 1)
    assert brokers.next().node == 3
    assert brokers.metadata_asked == [3]


def test_a_node_that_accepts_and_says_nothing_is_given_up_in_time():
    brokers = FakeBrokers(CONFIG.with_(request_timeout_ms=300))
    brokers.silent = [1]
    brokers.leaders[0] = (2, 1)
    client_of(brokers, 1)
    assert brokers.next().node == 2
    (close,) = brokers.rows("close")
    assert (close.node, close.code, close.t_us) == (1, "request timeout", 300 * MS)


def test_who_comes_back_after_a_loss_of_power_says_that_the_connection_is_gone():
    """With acks=0 nobody waits for an answer: a client wrote into it until its metadata was old."""
    brokers = FakeBrokers(CONFIG.with_(acks=0))
    client = client_of(brokers, 1)
    brokers.wait(lambda: bool(brokers.asked))
    (connection,) = brokers.network.connections
    connection.served = None
    brokers.down = [1]
    client.hand(1, 0)
    brokers.run(1_000)
    assert not brokers.rows("close")
    brokers.down = []
    client.hand(2, 0)
    brokers.run(100)
    assert [row.code for row in brokers.rows("close")] == ["reset"]
    client.hand(3, 0)
    brokers.wait(lambda: len(brokers.asked) == 2)


def test_what_a_dead_client_wrote_may_arrive_and_nothing_comes_back():
    brokers = FakeBrokers()
    client = client_of(brokers, 1)
    brokers.wait(lambda: bool(brokers.rows("send")))
    client.crash()
    asked = brokers.next()
    asked.produced()
    brokers.run(5)
    assert brokers.ends() == [("info", 0, "CRASHED")]


def test_what_was_written_on_a_path_that_is_cut_arrives_when_it_is_mended():
    """The client gave up the connection long ago and is served elsewhere: its old requests still
    come, before the node hears that nobody is there (a delayed duplicate, sim-S24)."""
    brokers = FakeBrokers(CONFIG.with_(request_timeout_ms=300))
    client = client_of(brokers)
    brokers.run(20)
    path = brokers.network.path(client.number, 1)
    path.cut = True
    client.hand(0, 0)
    brokers.run(100)
    brokers.leaders[0] = (2, 2)
    brokers.next().produced()
    brokers.wait(lambda: client.open_ops == 0)
    assert [row.node for row in brokers.rows("ok")] == [2]
    brokers.run(1_000)  # and it has tried to connect to node 1 again
    assert not brokers.asked
    brokers.network.mend()
    late = brokers.next()
    assert (late.node, late.told) == (1, ([0], 0, 0))
    late.produced()
    brokers.run(100)
    assert len(brokers.ended()) == 1


@pytest.mark.parametrize("read", [0, 1])
def test_what_is_written_behind_a_request_with_which_the_connection_breaks_is_lost_too(read):
    """A stream has no holes: no later request was ever read without the earlier ones. (It was: the
    connection broke only a while later, and what followed meanwhile arrived.)"""
    # Choices of the path: its spans and breaks. The third thing written breaks it, much later.
    tape = Tape({"path 7-1": {5: 999_999, 6: read, 7 + read: 255}})
    brokers = FakeBrokers(CONFIG.with_(reset_ppm=1, client_jitter_us=1_000), tape=tape)
    connection = brokers.network.connect(7, 1, lambda _: None, lambda _: None)
    connection.send(Frame(1, ApiVersionsRequest()))
    brokers.run(5)
    for number in (2, 3):
        connection.send(Frame(number, produce(-1, 0, ())))
    brokers.run(20)
    assert not connection.open
    assert [each.number for each in brokers.asked] == [2] * read


def test_what_is_held_up_was_on_its_way_already_and_arrives_in_order():
    """Only what was sent from then on was late."""
    brokers = FakeBrokers()
    connection = brokers.network.connect(7, 1, lambda _: None, lambda _: None)
    connection.send(Frame(1, ApiVersionsRequest()))
    brokers.run(5)
    for number in (2, 3):
        connection.send(Frame(number, produce(-1, 0, ())))
    connection.hold_up(1_000 * MS)
    connection.send(Frame(4, produce(-1, 0, ())))
    brokers.run(100)
    connection.send(Frame(5, produce(-1, 0, ())))
    connection.close()
    brokers.run(899)
    assert not brokers.asked
    brokers.run(1)
    assert [each.number for each in brokers.asked] == [2, 3, 4, 5]


# ---- metadata


def test_what_is_known_is_asked_again_when_it_is_old():
    brokers = FakeBrokers(CONFIG.with_(metadata_max_age_ms=1_000))
    client_of(brokers)
    brokers.run(3_500)
    assert len(brokers.metadata_asked) == 4


def test_it_asks_again_and_again_while_nobody_leads_but_not_at_once():
    brokers = FakeBrokers()
    brokers.leaders[0] = (0, -1)
    client_of(brokers, 1)
    brokers.run(1_000)
    assert 15 <= len(brokers.metadata_asked) <= 1_000 // CONFIG.retry_backoff_ms
    brokers.leaders[0] = (2, 4)
    assert brokers.next().node == 2


def test_an_older_leader_is_not_believed_and_a_newer_one_is():
    brokers = FakeBrokers()
    brokers.leaders[0] = (2, 5)
    client = client_of(brokers)
    brokers.run(20)
    brokers.leaders[0] = (1, 4)
    client.view.refresh()
    brokers.run(100)
    assert client.view.leader(0) == 2
    brokers.leaders[0] = (3, 6)
    client.view.refresh()
    brokers.run(100)
    assert client.view.leader(0) == 3


def test_stale_metadata_keeps_it_with_the_old_leader_until_somebody_knows_better():
    """sim-N8: the node it asks is cut off from the others and believes in itself."""
    brokers = FakeBrokers()
    client_of(brokers, 1)
    brokers.believes[1] = {0: (1, 1)}
    brokers.leaders[0] = (2, 2)
    for _ in range(3):
        asked = brokers.next()
        assert asked.node == 1
        asked.produced(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    brokers.down = [1]
    brokers.next().drop()
    assert brokers.next().node == 2


def test_nobody_reaches_a_node_that_clients_are_cut_from_whoever_comes_later():
    """Only the connections of the moment were cut: a client went to the next node, or was new."""
    brokers = FakeBrokers(CONFIG)
    brokers.network.cut((1, 2, 3))
    client = client_of(brokers)
    client.hand(0, 0)
    brokers.run(200)
    assert not brokers.asked
    brokers.network.cut((1,))  # a second fault, on top of the first
    brokers.network.let((1, 2, 3))
    brokers.run(10_000)
    assert {2, 3} & set(brokers.metadata_asked)
    assert not brokers.asked
    brokers.network.let((1,))
    assert brokers.next().node == 1


def test_a_cut_that_ends_after_all_were_mended_takes_nothing_from_the_next():
    brokers = FakeBrokers(CONFIG)
    brokers.network.cut((1,))
    brokers.network.mend()
    brokers.network.let((1,))
    brokers.network.cut((1,))
    assert brokers.network.path(7, 1).cut
