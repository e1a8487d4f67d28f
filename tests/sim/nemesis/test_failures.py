"""What a failure takes of what was acknowledged, by what was promised, counted in the history."""

import pytest

from ottla.broker.errors import ConfigError
from ottla.sim.chance.choices import Drawn
from ottla.sim.invariants.index import Index
from ottla.sim.invariants.losses import UNEXPLAINED, losses
from ottla.sim.nemesis.failures import FAILURES
from ottla.sim.nemesis.nemesis import named
from ottla.sim.studies.study import catalogue, parse
from ottla.sim.whole import run_whole

NAMES = [each.name for each in FAILURES]
VARIANTS = {
    (each.config.acks, each.config.min_insync, each.failure, each.config.flush): each
    for each in parse(catalogue()["acks"]).variants
}


def history(*key, seed=0, **changes):
    variant = VARIANTS[key]
    outcome, _ = run_whole(Drawn(seed), variant.config.with_(**changes), variant.failure)
    assert outcome.broke is None
    return Index(outcome.rows)


def lost(acks, minimum, failure, flush, seeds):
    found = [
        each
        for seed in range(seeds)
        for each in losses(history(acks, minimum, failure, flush, seed=seed, records=250))
    ]
    assert not [told for each in found for told, _ in each.explained if told == UNEXPLAINED]
    return sum(each.lost for each in found)


@pytest.mark.slow
@pytest.mark.parametrize("failure", NAMES)
@pytest.mark.parametrize("minimum", [1, 2, 3])
def test_acks_all_loses_nothing_that_is_synced(minimum, failure):
    assert lost(-1, minimum, failure, "each-turn", 2) == 0


@pytest.mark.slow
@pytest.mark.parametrize("failure", ["a follower is killed", "all lose power"])
def test_acks_all_loses_nothing_that_is_synced_at_a_glance(failure):
    assert lost(-1, 2, failure, "each-turn", 1) == 0


@pytest.mark.slow
@pytest.mark.parametrize("failure", NAMES[4:6])
def test_acks_1_loses_what_no_follower_had_and_says_to_what(failure):
    assert lost(1, 1, failure, "each-turn", 1) > 0


@pytest.mark.slow
def test_without_waiting_for_syncs_acks_all_loses_when_all_lose_power():
    assert lost(-1, 3, "all lose power", "off", 3) > 0


@pytest.mark.slow
def test_a_minimum_of_all_refuses_while_one_is_away():
    def counted(minimum):
        index = history(-1, minimum, "a follower is killed", "each-turn")
        too_few = sum(row.code.startswith("NOT_ENOUGH_REPLICAS") for row in index.rows["error"])
        acknowledged = sum(each.acknowledged for each in losses(index))
        return too_few, acknowledged, len(index.rows["inv"])

    refused, few, _ = counted(3)
    none, all_of_them, handed = counted(2)
    assert refused > none == 0
    assert few < all_of_them == handed


def test_losses_while_membership_changes_wait_for_it():
    with pytest.raises(ConfigError, match="no such fault: reconfigure"):
        named("reconfigure")
