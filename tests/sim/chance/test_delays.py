"""How long messages take: each shape has the mean that it says, and each way of a link its own.

The shapes are tables of whole numbers, so that a seed is the same run on every machine; what is
pinned here is what all of them must come to.
"""

from __future__ import annotations

import pytest

from ottla.sim.chance.choices import Drawn, Replayed, Tape
from ottla.sim.chance.delays import QUANTILES, SHAPES, spans
from ottla.sim.recording.record import record
from ottla.sim.run import Verdict, run
from ottla.sim.settings.settings import RunConfig
from ottla.sim.settings.swarm import draw
from ottla.sim.world.kernel import Kernel
from ottla.sim.world.network import SimNetwork

OWN = RunConfig(delays="own")


def network(config, choices=None):
    """The links of a run with these settings."""
    choices = choices or Replayed(Tape())
    network = SimNetwork(Kernel(), choices, config)
    network.draw_delays(choices)
    return network


@pytest.mark.parametrize("shape", SHAPES)
def test_a_shape_has_the_mean_that_was_asked_for(shape):
    taken = spans(1_000, 10_000, shape)
    assert len(taken) == QUANTILES
    assert list(taken) == sorted(taken)
    assert taken[0] < 1_500, "the plain choice is next to nothing"
    assert sum(taken) / QUANTILES == pytest.approx(11_000, rel=0.02)
    assert spans(1_000, 0, shape) == (1_000,) * len(spans(1_000, 0, shape))


def test_shapes_differ_in_their_tails():
    """Of the longest: how much they take of the mean, in hundredths."""
    tails = {
        shape: [spans(0, 100, shape)[each] for each in (128, 223, 240, 255)] for shape in SHAPES
    }
    assert tails == {
        "exponential": [69, 206, 280, 623],
        "lognormal": [61, 189, 285, 1086],
        "bimodal": [22, 39, 660, 716],
    }


def test_links_are_alike_unless_something_else_is_told():
    links = network(RunConfig(), Drawn(1)).links
    assert {each.spans for each in links.values()} == {spans(200, 200)}


def test_there_and_back_differ():
    links = network(OWN, Drawn(1)).links
    assert len({each.spans for each in links.values()}) > 3
    assert links[1, 2].spans != links[2, 1].spans
    assert all(each.spans[0] >= 200 for each in links.values())


def test_a_tape_without_choices_has_them_alike():
    links = network(OWN).links
    assert {each.spans for each in links.values()} == {spans(200, 200)}


def test_a_seed_draws_whether_they_have_their_own_and_everything_else_as_before():
    drawn = [draw(Drawn(seed), RunConfig()) for seed in range(60)]
    own = sum(each.delays == "own" for each in drawn)
    assert 10 <= own <= 30
    told = [draw(Drawn(seed), RunConfig(said=frozenset({"delays"}))) for seed in range(60)]
    assert [each.with_(delays="alike") for each in drawn] == told


def test_a_run_that_is_watched_has_them_too():
    """Who watches makes a network of their own, in the place of the plain one."""
    outcome = run(1, OWN.with_(load_ms=500, records=10))
    assert record(outcome, "", "").digest == outcome.digest


@pytest.mark.slow
def test_runs_with_delays_of_their_own_come_right():
    for seed in range(4):
        outcome = run(seed, OWN.with_(load_ms=3_000, records=60))
        assert outcome.verdict is Verdict.OK, f"seed {seed}: {outcome.reason}"
