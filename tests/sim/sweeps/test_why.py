"""`why` finds where the share of bad futures rises, and a fork keeps what it says it keeps."""

from dataclasses import replace

import pytest

from ottla.sim.mutants.catalogue import BY_ID
from ottla.sim.run import run
from ottla.sim.settings.settings import RunConfig
from ottla.sim.sweeps.kills import settings_of
from ottla.sim.sweeps.tape_file import Case, encode
from ottla.sim.sweeps.why import NothingToAskError, fails, fitted, futures_of, why

SHORT = RunConfig(profile="reference-strict", load_ms=2_000, records=40, fault_every_ms=300)


@pytest.fixture(scope="module")
def failed():
    return run(1, SHORT.with_(mutants="M06"))


def never(point, left):
    """Nobody looks at the progress."""


@pytest.mark.parametrize("turning", [1, 40, 100])
def test_it_finds_where_the_futures_turn_bad(failed, turning):
    asked = []

    def futures(eid, seeds):
        asked.append(eid)
        return (eid >= turning or seed % 10 == 3 for seed in seeds)

    curve = why(failed, futures, 20, 0, never)
    assert curve.rise is not None
    left, right = (curve.points[place] for place in curve.rise)
    assert left.eid < turning <= right.eid
    assert right.eid - left.eid <= 8
    assert curve.inevitable == right
    assert len(asked) == len(set(asked)) == len(curve.points)


def test_a_failure_of_the_first_event_has_one_point_and_no_rise(failed):
    first = replace(failed, anomalies=[failed.anomalies[0]._replace(eid=0)])
    curve = why(first, lambda _, seeds: (True for _ in seeds), 4, 0, never)
    assert len(curve.points) == 1
    assert curve.rise is None
    assert curve.inevitable == curve.points[0]


def test_rough_figures_rise_once():
    curve_of = [(3, 20), (1, 20), (2, 20), (19, 20), (20, 20)]
    fit = fitted(curve_of)
    assert fit == sorted(fit)
    assert fit[:3] == [0.1, 0.1, 0.1]


def test_a_future_behind_the_anomaly_is_the_past(failed):
    told = encode(Case(failed.config, failed.tape))
    anomaly = failed.anomalies[0]
    assert all(fails(told, anomaly.kind, anomaly.eid, seed) for seed in range(3))


@pytest.mark.slow
def test_a_run_that_comes_to_no_rest_for_another_reason_does_not_fail_alike():
    """`why` counted every sim-I31 and every sim-I00 as the same one, which `shrink` never did."""
    runs = (run(seed, settings_of(BY_ID["M29"])) for seed in range(31, 131))
    stuck = next(each for each in runs if [a.invariant for a in each.anomalies] == ["sim-I31"])
    (anomaly,) = stuck.anomalies
    other = replace(stuck, anomalies=[anomaly._replace(text="agreement of all: not within 9 ms")])
    alike = [list(futures_of(each)(anomaly.eid, [0])) for each in (stuck, other)]
    assert alike == [[True], [False]]


@pytest.mark.slow
def test_the_same_seed_gives_the_same_answer(failed):
    futures = futures_of(failed)
    assert list(futures(40, range(3))) == list(futures(40, range(3)))


def test_a_run_that_passed_has_no_why():
    passed = run(4, SHORT)
    assert not passed.anomalies
    with pytest.raises(NothingToAskError):
        why(passed, lambda *_: iter(()), 2, 0, never)
