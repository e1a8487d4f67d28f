"""Clients against the simulated cluster: what was acknowledged is there, once, in order."""

import pytest

from ottla.sim.clients.workload import Clients
from ottla.sim.settings.settings import RunConfig
from ottla.sim.world.world import SECOND, World
from sim_client_runs import Run, assert_exactly_once, assert_read, run

PLAIN = RunConfig(profile="reference-strict")
ROUGH = PLAIN.with_(reset_ppm=20_000, loss_ppm=50_000)


def _leader_dies(world: World, _: Clients) -> None:
    """The leader loses its power in the middle of the load and comes back two seconds later."""

    def crash() -> None:
        life = world.leader()
        assert life is not None
        world.crash(life.node_id, power=True)
        world.kernel.after(2 * SECOND, back, life.node_id)

    def back(node: int) -> None:
        assert world.start(node)

    world.kernel.after(7 * SECOND, crash)


def _judge(it: Run) -> None:
    assert_exactly_once(it)
    assert_read(it)


@pytest.mark.slow
@pytest.mark.parametrize("partitions", [1, 3])
def test_without_faults_everything_is_acknowledged_at_the_first_attempt(partitions):
    it = run(1, PLAIN.with_(partitions=partitions))
    _judge(it)
    assert len(it.rows("ok")) == PLAIN.records
    # After its rest leadership is handed over, and that costs an attempt.
    rested = min((row.eid for row in it.rows("phase") if row.code == "rested"), default=1 << 62)
    lost = it.rows("error", "close", "info", "fail")
    assert [row for row in lost if row.eid < rested] == []
    assert {row.aux for row in it.rows("send") if row.eid < rested} == {1}


@pytest.mark.slow
def test_a_leader_that_dies_costs_retries_and_nothing_else():
    it = run(2, PLAIN, _leader_dies)
    _judge(it)
    assert len(it.rows("ok")) == PLAIN.records
    assert it.rows("close"), "nobody noticed"


@pytest.mark.slow
def test_the_same_seed_gives_the_same_history():
    digests = [run(3, ROUGH, _leader_dies).world.history.digest() for _ in range(2)]
    assert digests[0] == digests[1]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_breaking_connections_and_lost_messages(seed):
    it = run(seed, ROUGH, _leader_dies)
    _judge(it)
    assert it.rows("error"), "nothing went wrong: the seed shows nothing"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3, 33))
def test_breaking_connections_and_lost_messages_over_many_seeds(seed):
    _judge(run(seed, ROUGH.with_(partitions=1 + seed % 3), _leader_dies))


@pytest.mark.slow
@pytest.mark.parametrize("acks", [0, 1])
def test_acks_below_all_are_plain_and_arrive_while_nothing_fails(acks):
    it = run(4, PLAIN.with_(acks=acks))
    _judge(it)
    assert {row.pid for row in it.rows("send")} == {None}
    assert {row.off == -1 for row in it.rows("ok")} == {acks == 0}


@pytest.mark.slow
def test_producers_that_die_or_live_on_as_zombies_are_replaced_under_a_new_id():
    it = run(5, ROUGH.with_(restart_ppm=200_000))
    _judge(it)
    replaced = it.rows("fault")
    assert any("died" in (row.code or "") for row in replaced)
    assert any("lives on" in (row.code or "") for row in replaced)
    writers = {row.client: row.pid for row in it.rows("ok")}
    assert len(set(writers.values())) == len(writers) > 2
