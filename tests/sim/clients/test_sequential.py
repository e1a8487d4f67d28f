"""The sequential client: steps that are answered, steps that are sent again, answers it refuses."""

import pytest

from ottla.sim.chance.choices import Drawn
from ottla.sim.clients.read_steps import ReadSteps
from ottla.sim.clients.sequential import SequentialClient, may_work
from ottla.sim.clients.steps import Steps
from ottla.sim.invariants.judge import attach
from ottla.sim.run import run
from ottla.sim.settings.settings import RunConfig
from ottla.sim.world.world import SECOND, World

EVERY = (
    *("append", "append-at-risk", "again", "gap", "new-epoch", "stale", "epoch-from-within"),
    *("ask-id", "append", "too-large", "far-ahead", "latest", "earliest", "by-time", "largest"),
    *("read", "read-beyond", "delete-records", "read-beyond", "delete-topic", "append"),
)


NO_STEPS = ("next", "topic", "planned", "for_the_deposed", "fetch", "anywhere")


def rows(plan, seed=1, during=lambda _world: None, **settings):
    """What the steps of a plan are answered, and what the model says instead."""
    world = World(RunConfig(nodes=3, replicas=3, **settings), Drawn(seed))
    found = attach(world.history, stop=False)
    world.boot()
    SequentialClient(world, plan).begin(20 * SECOND, SECOND)
    during(world)
    world.kernel.run(world.kernel.now + 20 * SECOND)
    told = [row for row in world.history.rows if row.kind == "step"]
    assert ("sim-I49" in found.first) == any(row.node == 0 for row in told)
    return told


def test_every_step_is_answered_as_the_model_says():
    told = rows(EVERY)
    assert [row.code for row in told if row.node == 0] == []
    whats = " ".join(row.code for row in told)
    for what in ("write again", "leave out", "old epoch", "begin epoch", "too much", "another age"):
        assert what in whats
    assert sum("create" in row.code for row in told) == 2


@pytest.mark.parametrize("profile", ["reference", "reference-strict"])
def test_under_both_profiles_that_are_modelled(profile):
    assert not any(row.node == 0 for row in rows(EVERY, seed=3, profile=profile))


def test_a_step_is_sent_again_when_its_node_dies():
    def kill(world):
        world.until(lambda: any(row.kind == "step" for row in world.history.rows), SECOND, "a step")
        for node in world.nodes[:2]:
            world.crash(node)
            world.kernel.after(2 * SECOND, world.start, node)

    told = rows(("append",) * 3, during=kill)
    assert not any(row.node == 0 for row in told)
    assert sum("write" in row.code and "offset" in row.code for row in told) >= 4


def test_an_answer_that_the_model_does_not_give_is_a_row_of_node_0():
    told = rows(("too-large",), mutants="M52")
    (wrong,) = [row for row in told if row.node == 0]
    assert wrong.code == "MESSAGE_TOO_LARGE"
    assert told[told.index(wrong) - 1].code == "write too much: NONE"


def test_every_step_that_is_drawn_can_be_planned():
    assert {each.replace("-", "_") for each in EVERY} == {
        name
        for name in {**vars(Steps), **vars(ReadSteps)}
        if not name.startswith("_") and name not in NO_STEPS
    }


@pytest.mark.parametrize(
    "settings",
    [{"profile": "redpanda-5157"}, {"producer_expiry_ms": 300}, {"max_producers": 2}],
)
def test_where_a_model_cannot_know_each_answer_it_does_not_work(settings):
    assert may_work(RunConfig())
    assert not may_work(RunConfig(**settings))


def test_most_seeds_have_it():
    def works(seed):
        settings = RunConfig(load_ms=100, records=1, fault_every_ms=100_000)
        return any(row.kind == "step" for row in run(seed, settings).rows)

    assert {works(seed) for seed in range(6)} == {True, False}
