"""What a producer's requests take, by how many are in flight: what their mechanism predicts.

Settings are those of the studies that ship, made smaller where that changes no answer.
"""

from functools import cache
from statistics import fmean

import pytest

from ottla.sim.chance.choices import Drawn
from ottla.sim.studies.study import catalogue, parse
from ottla.sim.whole import run_whole
from sim_request_times import Requests

LINE = 64_000
"""Bytes per millisecond of the line from client to leader."""
OF_PIPELINING, OF_IDEMPOTENCE = (
    {each.label: each.config for each in parse(catalogue()[name]).variants}
    for name in ("pipelining", "idempotence")
)
FAST = OF_PIPELINING["850 kB, 1 in flight, client_rtt_us=1000"].with_(record_bytes=1_000)
WARM_UP = 40


@cache
def requests(config):
    outcome, _ = run_whole(Drawn(0), config)
    assert outcome.broke is None
    return Requests(outcome.rows)


def of_idempotence(place, profile, *, idempotent):
    return OF_IDEMPOTENCE[f"{place}, profile={profile}, idempotent={idempotent}"]


@pytest.mark.parametrize("flight", [1, 2, 5])
def test_what_is_in_flight_multiplies_as_long_as_the_round_trip_is_what_takes_time(flight):
    """20 ms there and back, ten records in a request: 0.2 ms to write one."""
    asked = {"client_rtt_us": 20_000, "batch_records": 10, "records": 10 * (4 * flight + 1)}
    found = requests(FAST.with_(in_flight=flight, **asked))
    written = 10 * 1_000 / LINE
    inside = min(found.trips()) / 1_000 - 20 - written
    trip = 20 + written + inside
    assert found.rate(10, flight) == pytest.approx(flight * 10 / trip * 1_000, rel=0.03)


def test_a_line_carries_no_more_than_it_can():
    """Six in flight, of which one is always being written."""
    found = requests(FAST.with_(in_flight=6, batch_records=100, records=100 * 19))
    assert found.rate(100, 6) == pytest.approx(LINE, rel=0.03)


@pytest.mark.slow
@pytest.mark.parametrize("flight", [1, 2, 5])
def test_before_the_fix_each_waits_for_those_before_it(flight):
    """That is all: in the brokers a batch takes as long as ever, for plain producers too."""

    def inside(config):
        client = config.client_rtt_us + 2 * config.client_jitter_us
        return fmean(requests(config).trips()[WARM_UP:]) - client

    alone = inside(of_idempotence("always 1 in flight", "reference", idempotent=False))
    for idempotent in (False, True):
        place = f"always {flight} in flight"
        config = of_idempotence(place, "redpanda-22.1.3", idempotent=idempotent)
        assert inside(config.with_(records=240)) == pytest.approx(flight * alone, rel=0.06)


@pytest.mark.slow
@pytest.mark.parametrize("profile", ["reference", "redpanda-5157"])
def test_with_the_fix_idempotence_costs_nothing(profile):
    plain, idempotent = (
        fmean(requests(of_idempotence("load 67 %", each, idempotent=kind)).waits(WARM_UP))
        for each, kind in (("reference", False), (profile, True))
    )
    assert idempotent == pytest.approx(plain, rel=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("profile", ["reference", "redpanda-5157"])
def test_nor_does_it_with_requests_always_in_flight(profile):
    """A run of a fifth of the records is 3 % off: who waits for how much of a sync is chance."""
    plain = requests(of_idempotence("always 5 in flight", "reference", idempotent=False))
    idempotent = requests(of_idempotence("always 5 in flight", profile, idempotent=True))
    trips = (fmean(each.trips()[WARM_UP:]) for each in (plain, idempotent))
    assert next(trips) == pytest.approx(next(trips), rel=0.02)


@pytest.mark.slow
def test_before_the_fix_a_load_makes_it_a_queue():
    plain, before = (
        fmean(requests(of_idempotence("load 80 %", profile, idempotent=idempotent)).waits(WARM_UP))
        for profile, idempotent in (("reference", False), ("redpanda-22.1.3", True))
    )
    assert before > 1.6 * plain
