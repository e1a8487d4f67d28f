"""The workload: who is handed what, when, and who takes over from a producer.

Whole runs here are short, three seconds, with the clients' own faults and no others but those that
a test sets going. A tape without choices is the plainest run there is.
"""

from collections import Counter
from itertools import pairwise

import pytest

from ottla.broker.errors import ErrorCode
from ottla.sim.chance.choices import Drawn, Replayed, Tape
from ottla.sim.clients.java_lane import JavaLane
from ottla.sim.clients.producer_java import JavaProducer
from ottla.sim.clients.producer_librdkafka import LibrdkafkaProducer
from ottla.sim.clients.workload import Clients, make_clients
from ottla.sim.history.history import Event
from ottla.sim.settings.settings import RunConfig
from ottla.sim.world.batch import Batch, Op
from ottla.sim.world.world import SECOND, World
from sim_client_runs import assert_exactly_once, assert_one_end_each, assert_read, run

CONFIG = RunConfig(profile="reference-strict", load_ms=3_000, records=60)


def loaded(world: World) -> tuple[Clients, list[Event]]:
    """Clients of a world after its load, and the rows of what they were handed."""
    world.boot()
    clients = make_clients(world)
    clients.start()
    assert clients.idle() == (not clients.producers)
    begin = world.kernel.now
    world.kernel.run(begin + world.config.load_ms * 1000)
    handed = [row for row in world.history.rows if row.kind == "inv"]
    return clients, [row._replace(t_us=row.t_us - begin) for row in handed]


def test_plainly_records_are_handed_out_one_by_one_at_even_distances():
    clients, handed = loaded(World(CONFIG, Replayed(Tape())))
    assert [row.op for row in handed] == list(range(60))
    assert [row.client for row in handed] == [1, 2] * 30
    assert {after.t_us - before.t_us for before, after in pairwise(handed)} == {50_000}
    assert clients.idle()


@pytest.mark.parametrize("seed", range(5))
def test_drawn_they_come_in_bursts_and_pauses_over_the_same_time(seed):
    config = CONFIG.with_(records=61, producers=3, partitions=3)
    _, handed = loaded(World(config, Drawn(seed)))
    assert sorted(row.op or 0 for row in handed) == list(range(61))
    assert Counter(row.client for row in handed) == {1: 21, 2: 20, 3: 20}
    bursts = Counter((row.client, row.t_us) for row in handed)
    assert max(bursts.values()) > 3
    assert handed[-1].t_us < 3 * SECOND
    assert {row.partition for row in handed} == {0, 1, 2}


def test_without_producers_there_is_nothing_to_wait_for():
    world = World(CONFIG.with_(producers=0, consumers=2), Drawn(1))
    clients, handed = loaded(world)
    assert handed == []
    assert clients.idle()
    assert clients.behind(range(world.config.partitions)) == []


@pytest.mark.parametrize(
    ("model", "found"),
    [
        ("java", [JavaProducer, JavaProducer]),
        ("librdkafka", [LibrdkafkaProducer, LibrdkafkaProducer]),
        ("both", [JavaProducer, LibrdkafkaProducer]),
    ],
)
def test_producers_are_of_the_model_that_is_set(model, found):
    clients = make_clients(World(CONFIG.with_(client_model=model), Drawn(1)))
    assert [type(each) for each in clients.producers] == found


def test_consumers_are_at_the_end_only_when_they_have_read_everything():
    world = World(CONFIG, Drawn(2))
    clients, _ = loaded(world)
    (consumer,) = clients.consumers
    world.until(lambda: not clients.behind([0]), SECOND, "the end")
    consumer.stop()
    clients.hand(0, 0)
    world.until(clients.idle, SECOND, "an answer")
    assert clients.behind([0]) == [(0, consumer)]


@pytest.mark.parametrize("zombie", [True, False])
def test_a_producer_is_replaced_in_the_middle_of_a_burst(zombie):
    def script(world: World, clients: Clients) -> None:
        for op_of_burst in range(8):
            world.kernel.after(SECOND + op_of_burst, clients.hand, 0, 0)
        world.kernel.after(SECOND + 5_500, lambda: clients.replace(0, zombie=zombie))

    config = CONFIG.with_(producers=1, records=60, client_model="java")
    world = World(config, Replayed(Tape()))
    world.boot()
    clients = make_clients(world)
    clients.start()
    script(world, clients)
    world.kernel.run(world.kernel.now + 3 * SECOND)
    rows = world.history.rows
    owners = {row.op: row.client for row in rows if row.kind == "inv"}
    ends = {row.op: row.kind for row in rows if row.kind in {"ok", "fail", "info"}}
    assert list(ends) == list(owners)
    assert set(owners.values()) == {1, 3}
    (fault,) = [row for row in rows if row.kind == "fault"]
    assert fault.client == 1
    assert [each.number for each in clients.retired] == [1] * zombie
    assert (set(ends.values()) == {"ok"}) == zombie
    ids = {row.client: row.pid for row in rows if row.kind == "ok"}
    assert ids[1] != ids[3]


def test_nobody_is_replaced_once_faults_have_stopped():
    config = CONFIG.with_(restart_ppm=1_000_000)
    it = run(1, config)
    assert_one_end_each(it)
    assert len(it.rows("fault")) >= 10
    world = World(config, Drawn(1))
    world.boot()
    clients = make_clients(world)
    clients.stop_faults()
    clients.start()
    world.kernel.run(world.kernel.now + 3 * SECOND)
    assert clients.idle()
    assert not [row for row in world.history.rows if row.kind == "fault"]


def test_a_producer_in_a_fatal_state_is_replaced_before_the_next_record():
    world = World(CONFIG.with_(client_model="librdkafka", producers=1), Replayed(Tape()))
    world.boot()
    clients = make_clients(world)
    clients.start()
    world.kernel.run(world.kernel.now + SECOND)
    (first,) = clients.producers
    first.failed = True
    world.kernel.run(world.kernel.now + 2 * SECOND)
    assert clients.producers[0].number != first.number
    assert clients.idle()


@pytest.mark.parametrize("model", ["java", "librdkafka"])
def test_short_patience_gives_up_on_records_and_still_ends_each_of_them_once(model):
    """The leader is gone for longer than a record may take: some expire, epochs are bumped."""

    def script(world: World, _: Clients) -> None:
        def freeze() -> None:
            for node in world.nodes[:2]:
                world.freeze(node)
            world.kernel.after(2 * SECOND, thaw)

        def thaw() -> None:
            for node in world.nodes:
                world.thaw(node)

        world.kernel.after(SECOND // 2, freeze)

    config = CONFIG.with_(delivery_timeout_ms=800, request_timeout_ms=300, client_model=model)
    it = run(3, config, script)
    assert_one_end_each(it)
    assert_read(it)
    kinds = Counter(row.kind for row in it.rows("ok", "fail", "info"))
    assert kinds["ok"] > 10
    assert kinds["fail"] + kinds["info"] > 5
    stored = set(it.log(0))
    assert not stored & {row.value for row in it.rows("fail")}
    assert stored >= {row.value for row in it.rows("ok")}


def test_sequences_wrap_in_a_java_partition():
    lane = JavaLane(0)
    lane.start_over(7, 0)
    lane.next_seq = 2**31 - 2
    lane.last_acked = 2**31 - 3
    batches: list[Batch] = []
    for op in range(3):
        lane.put(Op(op, 0, 0), 1)
        batches.append(lane.drain(7, 0))
    assert [each.seq for each in batches] == [2**31 - 2, 2**31 - 1, 0]
    assert lane.is_next(2**31 - 2)
    for each in (batches[0], batches[2], batches[1]):
        lane.acknowledged(each)
    assert lane.last_acked == 0
    assert lane.is_next(1)
    assert lane.may_retry(batches[0], ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    assert not lane.bump_wanted


def test_everything_at_once_is_stored_once_and_in_order():
    config = CONFIG.with_(
        partitions=3, producers=3, consumers=2, reset_ppm=30_000, restart_ppm=100_000
    )
    it = run(7, config)
    assert_exactly_once(it)
    assert_read(it)
