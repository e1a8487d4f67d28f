"""Experiments, small: what their mechanisms predict, and what is known beforehand.

The whole tables take minutes; here are single variants of them, made smaller, whose answer follows
from their mechanism, and the reports made of figures.
"""

from dataclasses import replace
from itertools import product

import pytest

from ottla.broker.errors import ConfigError
from ottla.sim.clients.link import ProtocolViolation
from ottla.sim.experiments import acks, idempotence, pipelining
from ottla.sim.experiments.acks import Promise
from ottla.sim.experiments.conduct import Done, NoEndError, conduct, play
from ottla.sim.experiments.failures import FAILURES
from ottla.sim.experiments.idempotence import BASELINE, BEFORE, Broker
from ottla.sim.experiments.pipelining import Case
from ottla.sim.history.history import digest_of
from ottla.sim.invariants.losses import UNEXPLAINED
from ottla.sim.nemesis.nemesis import named

EXPERIMENTS = (pipelining.EXPERIMENT, idempotence.EXPERIMENT, acks.EXPERIMENT)
BY_KEY = {each.name: {v.key: v for v in each.variants} for each in EXPERIMENTS}


def figures_of(experiment, key, seed=0, **changes):
    variant = BY_KEY[experiment.name][key]
    variant = replace(variant, config=variant.config.with_(**changes))
    return experiment.measure(play(variant, seed), variant.config)


def test_one_seed_is_one_experiment():
    variant = acks.EXPERIMENT.variants[-1]
    variant = replace(variant, config=variant.config.with_(records=100))
    assert digest_of(play(variant, 7)) == digest_of(play(variant, 7))
    assert digest_of(play(variant, 7)) != digest_of(play(variant, 8))


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda each: each.name)
def test_every_variant_has_a_name_of_its_own_and_differs_in_nothing_else(experiment):
    assert len(BY_KEY[experiment.name]) == len(experiment.variants)
    configs = {(each.config.name, each.plan) for each in experiment.variants}
    assert len(configs) == len(experiment.variants)


# ---- pipelining


@pytest.mark.parametrize("flight", [1, 2, 5])
def test_what_is_in_flight_multiplies_as_long_as_the_round_trip_is_what_takes_time(flight):
    """20 ms there and back, ten records in a request: 0.2 ms to write one."""
    key = Case(850, 70, 1).key
    figures = figures_of(
        pipelining.EXPERIMENT,
        key,
        client_rtt_us=20_000,
        in_flight=flight,
        batch_records=10,
        records=10 * (4 * flight + 1),
    )
    trip = 20 + 10 * 1_000 / pipelining.CAPACITY + figures["inside_ms"]
    assert figures["rate"] == pytest.approx(flight * 10 / trip * 1_000, rel=0.03)


def test_a_line_carries_no_more_than_it_can():
    """Six in flight, of which one is always being written."""
    figures = figures_of(
        pipelining.EXPERIMENT, Case(850, 1, 6).key, batch_records=100, records=100 * 19
    )
    assert figures["rate"] == pytest.approx(pipelining.PLATEAU, rel=0.03)


# ---- idempotence


@pytest.mark.parametrize("flight", [1, 2, 5])
def test_before_the_fix_each_waits_for_those_before_it(flight):
    """That is all: in the brokers a batch takes as long as ever, for plain producers too."""
    alone = figures_of(idempotence.EXPERIMENT, ("in flight", 1, *BASELINE))
    for broker in BEFORE:
        figures = figures_of(idempotence.EXPERIMENT, ("in flight", flight, *broker), records=240)
        inside = figures["trip"] - figures["client"]
        assert inside == pytest.approx(flight * (alone["trip"] - alone["client"]), rel=0.06)


@pytest.mark.parametrize("profile", ["reference", "redpanda-5157"])
def test_with_the_fix_idempotence_costs_nothing(profile):
    load = idempotence.LOADS[2]
    plain = figures_of(idempotence.EXPERIMENT, ("load", load, *BASELINE))
    idempotent = figures_of(idempotence.EXPERIMENT, ("load", load, *Broker(profile, True)))
    assert idempotent["wait"] == pytest.approx(plain["wait"], rel=0.01)


@pytest.mark.parametrize("profile", ["reference", "redpanda-5157"])
def test_nor_does_it_with_requests_always_in_flight(profile):
    """A run of a fifth of the records is 3 % off: who waits for how much of a sync is chance."""
    plain = figures_of(idempotence.EXPERIMENT, ("in flight", 5, *BASELINE))
    idempotent = figures_of(idempotence.EXPERIMENT, ("in flight", 5, *Broker(profile, True)))
    assert idempotent["trip"] == pytest.approx(plain["trip"], rel=0.02)


def test_before_the_fix_a_load_makes_it_a_queue():
    load = idempotence.LOADS[3]
    plain = figures_of(idempotence.EXPERIMENT, ("load", load, *BASELINE))
    before = figures_of(idempotence.EXPERIMENT, ("load", load, *BEFORE[1]))
    assert before["wait"] > 1.6 * plain["wait"]


# ---- acks

SYNCED, UNSYNCED = acks.FLUSHES


def lost(promise, failure, flush, seeds):
    found = [
        figures_of(acks.EXPERIMENT, (*promise, failure, flush), seed, records=250)
        for seed in range(seeds)
    ]
    assert sum(each[UNEXPLAINED] for each in found) == 0
    return sum(each["lost"] for each in found)


@pytest.mark.slow
@pytest.mark.parametrize("failure", [each.name for each in FAILURES])
@pytest.mark.parametrize("promise", acks.PROMISES[2:], ids=str)
def test_acks_all_loses_nothing_that_is_synced(promise, failure):
    assert lost(promise, failure, SYNCED, 2) == 0


@pytest.mark.parametrize("failure", ["a follower is killed", "all lose power"])
def test_acks_all_loses_nothing_that_is_synced_at_a_glance(failure):
    assert lost(Promise(-1, 2), failure, SYNCED, 1) == 0


@pytest.mark.parametrize("failure", [each.name for each in FAILURES[4:6]])
def test_acks_1_loses_what_no_follower_had_and_says_to_what(failure):
    assert lost(Promise(1, 1), failure, SYNCED, 1) > 0


def test_without_waiting_for_syncs_acks_all_loses_when_all_lose_power():
    assert lost(Promise(-1, 3), "all lose power", UNSYNCED, 3) > 0


def test_a_minimum_of_all_refuses_while_one_is_away():
    all_three, majority = (
        figures_of(acks.EXPERIMENT, (-1, minimum, "a follower is killed", SYNCED))
        for minimum in (3, 2)
    )
    assert all_three["too few"] > 0
    assert majority["too few"] == 0
    assert all_three["acknowledged"] < majority["acknowledged"] == majority["handed"]


# ---- reports


def test_a_report_is_made_of_figures():
    figures = {"rate": 5_494.0, "inside_ms": 1.0, "trip_ms": 154.0}
    measured = {each.key: [figures, figures] for each in pipelining.EXPERIMENT.variants}
    report = pipelining.report(measured)
    assert report.lines[0].cells == ("140 ms", "1", "850", "5,494", "5,494", "1.00")
    assert "asks for 847 records in a request" in report.lines[0].reason
    assert all(len(line.cells) == len(report.columns) for line in report.lines)


def test_a_plain_producer_with_as_many_in_flight_is_measured_beside_an_idempotent_one():
    idempotent = [each for each in pipelining.CASES if each.idempotent]
    assert idempotent
    figures = {"rate": 5_000.0, "inside_ms": 1.0, "trip_ms": 154.0}
    measured = {each.key: [figures] for each in pipelining.EXPERIMENT.variants}
    for case in idempotent:
        assert case._replace(idempotent=False) in pipelining.CASES
        slow = measured | {case.key: [figures | {"rate": 4_000.0}]}
        (line,) = (
            line
            for each, line in zip(pipelining.CASES, pipelining.report(slow).lines, strict=True)
            if each == case
        )
        assert "0.800 times a plain producer with as many in flight" in line.reason


def of_idempotence(**slow):
    """Figures as they might be: the old broker doubles at a load of 73 %."""
    ratios = dict(zip(idempotence.LOADS, (1.0, 1.5, 1.75, 2.25), strict=True))

    def figures(key):
        kind, place, *broker = key
        before = Broker(*broker) in BEFORE
        times = ratios.get(place, 1.0) if before else slow.get(kind.replace(" ", "_"), 1.0)
        times = 1.0 if Broker(*broker) == BASELINE else times
        return {"wait": 3.0 * times, "trip": 3.0 * times, "client": 0.1}

    return {each.key: [figures(each.key)] * 2 for each in idempotence.EXPERIMENT.variants}


def test_what_the_fix_leaves_is_told_of_requests_always_in_flight_too():
    report = idempotence.report(of_idempotence(in_flight=1.25))
    assert "1.000 to 1.000 times the baseline's by load, and 1.250 to 1.250" in report.findings[-1]


def test_what_was_published_stands_beside_what_was_measured_and_a_model_is_no_publication():
    report = idempotence.report(of_idempotence())
    place = [each.head for each in report.columns].index("published, load not said")
    told = {line.cells[1]: line.cells[place] for line in report.lines}
    assert told.pop(BASELINE.told()) == "1.00"
    assert told.pop(BEFORE[1].told()) == "2.00"
    assert set(told.values()) == {"-"}
    (chart,) = report.charts
    (published,) = (each for each in chart.series if each.published)
    assert {times for _, times in published.points} == {2.0}
    assert "a queue with one server" in " ".join(e.name for e in chart.series if not e.published)
    assert "at a load of about 73%" in report.findings[0]


def test_conducting_tells_of_every_run_and_keeps_the_seeds_apart():
    few = replace(acks.EXPERIMENT, variants=acks.EXPERIMENT.variants[:2])
    told: list[Done] = []
    measured = conduct(few, range(3, 5), told.append)
    assert [each.runs for each in told] == [1, 2, 3, 4]
    assert [(each.seed, each.key) for each in told] == [
        (seed, variant.key) for seed, variant in product((3, 4), few.variants)
    ]
    assert [len(figures) for figures in measured.values()] == [2, 2]


def test_a_run_that_comes_to_no_end_is_named():
    """Here it gets no time to come to rest."""
    (first, *_) = acks.EXPERIMENT.variants
    variant = replace(first, config=first.config.with_(settle_ms=1, records=20, load_ms=7_000))
    with pytest.raises(NoEndError, match="seed 5 of 0, 1, a follower is killed, each-turn: "):
        conduct(replace(acks.EXPERIMENT, variants=(variant,)), range(5, 6))


def test_a_node_that_breaks_the_protocol_is_no_end_either():
    def plan(_):
        raise ProtocolViolation("answered what nobody asked")

    (first, *_) = acks.EXPERIMENT.variants
    variant = replace(first, plan=plan)
    with pytest.raises(NoEndError, match="each-turn: answered what nobody asked"):
        conduct(replace(acks.EXPERIMENT, variants=(variant,)), range(5, 6))


def test_losses_while_membership_changes_wait_for_it():
    with pytest.raises(ConfigError, match="no such fault: reconfigure"):
        named("reconfigure")
