"""Experiment `idempotence`: what idempotence costs, before and after the fix (promise-R6).

Redpanda's issue 5054: v22.1 had twice the latency of v21.11, where idempotence was off. The reason
was not the producer's state: stage one of replication ended with the result, so a connection had
one batch in Raft at a time and the next one waited (RP-STAGING). Profile `redpanda-22.1.3`
does just that, and nothing here says what it costs.

What it must cost can be said beforehand. One request at a time, each the same S in the brokers:
that is a queue with one server. Requests that come at random with a load r = rate x S wait
r / (2 (1 - r)) S on average (Pollaczek and Khinchine, M/D/1), and with k requests always in flight
each waits for k - 1 others. So *double* is two in flight, or a load of two thirds; of somewhat more
where those that go together wait for a sync under way, as they do in the baseline.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from statistics import fmean
from typing import NamedTuple, TypeVar

from ottla.sim.experiments.model import (
    Chart,
    Column,
    Experiment,
    Figures,
    Key,
    Line,
    Measured,
    Report,
    Series,
    Variant,
    mean,
)
from ottla.sim.experiments.requests import Requests
from ottla.sim.history.history import Event
from ottla.sim.settings.settings import RunConfig

BROKERS_MS = 2.6
"""What a batch takes in the brokers when it is alone: there and back between nodes, a sync on each,
turns. It is measured anew (one request always in flight); this is to set loads by."""
RECORDS = 400
WARM_UP = 40
"""Records that do not count: connections and ids are asked for."""
CLOSED_RECORDS = 1_200
"""With a fifth of them runs that differ in their seed alone are some 2 % off their mean."""
PUBLISHED = 2.0
"""Times the baseline: v22.1.3 with idempotence, under a load that is not said."""

BASE = RunConfig(
    client_model="java",
    producers=1,
    consumers=0,
    batch_records=1,
    arrivals="random",
    records=RECORDS,
    client_rtt_us=100,
    client_jitter_us=20,
    rtt_us=1_000,
    sync_us=1_000,
)
"""Jitter is the default, 0.2 ms in the mean: without any, requests always in flight fall into step
with syncs, each waiting for one or none, and what is measured is the step."""

Place = TypeVar("Place", int, float)
"""A load, or how many are in flight."""


class Broker(NamedTuple):
    """Whose rules, and what kind of producer."""

    profile: str
    idempotent: bool

    def told(self) -> str:
        """In words."""
        return f"{self.profile}, {'idempotent' if self.idempotent else 'plain'}"


BASELINE = Broker("reference", idempotent=False)
BEFORE = (Broker("redpanda-22.1.3", idempotent=False), Broker("redpanda-22.1.3", idempotent=True))
BROKERS = (
    BASELINE,
    Broker("reference", idempotent=True),
    Broker("redpanda-5157", idempotent=True),
    *BEFORE,
)
AFTER = tuple(each for each in BROKERS if each.idempotent and each not in BEFORE)
LOADS = (0.25, 0.5, 2 / 3, 0.8)
"""Requests per second, as a share of what one at a time could be."""
FLIGHTS = (1, 2, 5)
"""Requests always in flight: a producer that always has more to send."""


def _open(load: float, broker: Broker) -> Variant:
    config = BASE.with_(
        profile=broker.profile,
        idempotent=broker.idempotent,
        load_ms=round(RECORDS * BROKERS_MS / load),
    )
    return Variant(_open_key(load, broker), config)


def _closed(flight: int, broker: Broker) -> Variant:
    config = BASE.with_(
        profile=broker.profile,
        idempotent=broker.idempotent,
        in_flight=flight,
        load_ms=1,
        arrivals="even",
        records=CLOSED_RECORDS,
    )
    return Variant(_closed_key(flight, broker), config)


def _open_key(load: float, broker: Broker) -> Key:
    return ("load", load, *broker)


def _closed_key(flight: int, broker: Broker) -> Key:
    return ("in flight", flight, *broker)


def measure(rows: Sequence[Event], config: RunConfig) -> Figures:
    """Mean latencies in milliseconds: from being handed over, and from being sent."""
    requests = Requests(rows)
    trips = requests.trips()[WARM_UP:]
    return {
        "wait": fmean(requests.waits(WARM_UP)) / 1_000,
        "trip": fmean(trips) / 1_000,
        "client": config.client_rtt_us / 1_000 + 2 * config.client_jitter_us / 1_000,
    }


def report(measured: Measured) -> Report:
    """The table: by load, then by requests in flight."""
    columns = (
        Column("requests", number=False),
        Column("profile, producer", number=False),
        Column("latency, ms"),
        Column("times the baseline"),
        Column("published, load not said"),
        Column("a queue would"),
    )
    lines = (
        *(_line(measured, load, each) for load in LOADS for each in BROKERS),
        *(_closed_line(measured, flight, each) for flight in FLIGHTS for each in BROKERS),
    )
    return Report(columns, lines, _charts(measured), tuple(_findings(measured)))


def _line(measured: Measured, load: float, broker: Broker) -> Line:
    latency = mean(measured[_open_key(load, broker)], "wait")
    expected = predicted(measured, load) if broker in BEFORE else 1.0
    ratio = _open_ratio(measured, load, broker)
    figures = (f"{latency:.2f}", f"{ratio:.2f}", _published(broker), f"{expected:.2f}")
    queue = f"a load of {load:.0%} makes it a queue with one server."
    if broker == BEFORE[1]:
        queue = f"{queue} {_beside_double(_doubles(measured))}"
    return Line((f"load {load:.0%}", broker.told(), *figures), _reason(broker, queue))


def _closed_line(measured: Measured, flight: int, broker: Broker) -> Line:
    latency = mean(measured[_closed_key(flight, broker)], "trip")
    expected = _expected_closed(measured, flight) if broker in BEFORE else 1.0
    ratio = _closed_ratio(measured, flight, broker)
    figures = (f"{latency:.2f}", f"{ratio:.2f}", _published(broker), f"{expected:.2f}")
    queue = f"each waits for {flight - 1} before it." if flight > 1 else "and there is no other."
    if broker == BEFORE[1] and flight == 2:
        queue = f"{queue} Short of double, as two of the baseline wait for syncs under way, too."
    reason = _reason(broker, queue)
    if broker in AFTER and flight > 1:
        least, most = _seeds_apart(measured, flight)
        reason = (
            f"{reason} What is left is chance, which says how much of a sync under way each waits "
            f"for: the baseline's own runs are {least:.3f} to {most:.3f} of their mean."
        )
    return Line((f"always {flight} in flight", broker.told(), *figures), reason)


def _published(broker: Broker) -> str:
    """A cell: what the issue says of such a broker."""
    return {BASELINE: f"{1:.2f}", BEFORE[1]: f"{PUBLISHED:.2f}"}.get(broker, "-")


def _reason(broker: Broker, queue: str) -> str:
    if broker in BEFORE:
        return f"One batch of the connection in Raft at a time: {queue}"
    if broker == BASELINE:
        return "The baseline: every batch goes into Raft as it comes, and may wait for a sync."
    return "Every batch goes into Raft as it comes: the mutex is held until enqueued, not longer."


def _beside_double(load: float | None) -> str:
    return (
        f"It is double, as published, at a load of about {load:.0%}."
        if load
        else "It is double, as published, at none of these loads."
    )


def _doubles(measured: Measured) -> float | None:
    """The load at which latency is what was published, between two that were measured."""
    ratios = [(load, _open_ratio(measured, load, BEFORE[1])) for load in LOADS]
    for (low, below), (high, above) in pairwise(ratios):
        if below <= PUBLISHED < above:
            return low + (high - low) * (PUBLISHED - below) / (above - below)
    return None


def _seeds_apart(measured: Measured, flight: int) -> tuple[float, float]:
    """The least and the most of the baseline's runs, which differ in their seed alone."""
    trips = [each["trip"] for each in measured[_closed_key(flight, BASELINE)]]
    return min(trips) / fmean(trips), max(trips) / fmean(trips)


def _alone(measured: Measured) -> float:
    """What a batch takes in the brokers when it is alone, in milliseconds."""
    figures = measured[_closed_key(1, BASELINE)]
    return mean(figures, "trip") - mean(figures, "client")


def predicted(measured: Measured, load: float) -> float:
    """Latency times the baseline if requests come one at a time out of an M/D/1 queue."""
    alone = _alone(measured)
    busy = load * alone / BROKERS_MS
    waiting = alone * busy / (2 * (1 - busy))
    before = mean(measured[_closed_key(1, BASELINE)], "trip") + waiting
    return before / mean(measured[_open_key(load, BASELINE)], "wait")


def _expected_closed(measured: Measured, flight: int) -> float:
    baseline = mean(measured[_closed_key(flight, BASELINE)], "trip")
    return max(1.0, flight * _alone(measured) / baseline)


def _open_ratio(measured: Measured, load: float, broker: Broker) -> float:
    baseline = mean(measured[_open_key(load, BASELINE)], "wait")
    return mean(measured[_open_key(load, broker)], "wait") / baseline


def _closed_ratio(measured: Measured, flight: int, broker: Broker) -> float:
    baseline = mean(measured[_closed_key(flight, BASELINE)], "trip")
    return mean(measured[_closed_key(flight, broker)], "trip") / baseline


def _charts(measured: Measured) -> tuple[Chart, ...]:
    def of(broker: Broker) -> Series:
        points = tuple((load, _open_ratio(measured, load, broker)) for load in LOADS)
        return Series(broker.told(), points)

    queue = tuple((load, predicted(measured, load)) for load in LOADS)
    double = tuple((load, PUBLISHED) for load in LOADS)
    series = (
        *map(of, BROKERS[1:]),
        Series("v22.1.3, published, load not said", double, published=True),
        Series("model: a queue with one server", queue),
    )
    title = "Mean latency, times that of the baseline, by load"
    return (Chart(title, "load", "times the baseline", series),)


def _findings(measured: Measured) -> Iterator[str]:
    plain, idempotent = BEFORE
    by_load = [f"{_open_ratio(measured, each, idempotent):.2f} at {each:.0%}" for each in LOADS]
    yield (
        "Before the fix the latency of an idempotent producer is this many times the baseline's, "
        f"by load: {', '.join(by_load)}; and {_closed_ratio(measured, 2, idempotent):.2f} with two "
        "requests always in flight. The issue says double, and not under which load. "
        f"{_beside_double(_doubles(measured))}"
    )
    same = [_open_ratio(measured, each, plain) for each in LOADS]
    yield (
        f"A plain producer pays the same there, {same[0]:.2f} to {same[-1]:.2f} times: what is "
        "slow is the connection. The baseline stands for v21.11, and for v22.1 with idempotence "
        "turned off in the broker."
    )
    least, most = zip(*(_seeds_apart(measured, each) for each in FLIGHTS), strict=True)
    yield (
        f"With the fix an idempotent producer's is {_range(_open_ratio, measured, LOADS)} times "
        f"the baseline's by load, and {_range(_closed_ratio, measured, FLIGHTS)} times with "
        f"requests always in flight, where the baseline's own runs are {min(least):.3f} to "
        f"{max(most):.3f} of their mean from seed to seed."
    )


def _range(
    ratio: Callable[[Measured, Place, Broker], float], measured: Measured, places: Sequence[Place]
) -> str:
    """From where to where the fixed profiles are."""
    found = [ratio(measured, place, each) for place in places for each in AFTER]
    return f"{min(found):.3f} to {max(found):.3f}"


EXPERIMENT = Experiment(
    name="idempotence",
    title="What idempotence costs",
    question="How long does a record take to be acknowledged, by profile, for a plain and for an "
    "idempotent producer?",
    published="Redpanda issue 5054: v22.1.3 has double the latency of v21.11.16, and as much as it "
    "when idempotence is turned off (a picture, no figures); fixed by pull request 5157.",
    conditions=(
        ("cluster", "three nodes, 1 ms between them, 1 ms for a sync"),
        ("producer", "one, acks=all, one record in a request, 0.1 ms from the leader"),
        ("load", "requests that come at random, as a share of what one at a time could be"),
        ("latency", "mean; under a load from being handed over, always in flight from being sent"),
        ("not modelled", "CPU time, and that a request of many partitions waits for the slowest"),
    ),
    variants=(
        *(_open(load, broker) for load in LOADS for broker in BROKERS),
        *(_closed(flight, broker) for flight in FLIGHTS for broker in BROKERS),
    ),
    measure=measure,
    report=report,
    seeds=3,
)
