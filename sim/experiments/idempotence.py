"""Experiment `idempotence`: what idempotence costs, before and after the fix (mission-R6).

Redpanda's issue 5054: v22.1 had twice the latency of v21.11, where idempotence was off. The reason
was not the producer's state: stage one of replication ended with the result, so a connection had
one batch in Raft at a time and the next one waited (facts/redpanda.md 5). Profile `redpanda-22.1.3`
does just that, and nothing here says what it costs.

What it must cost can be said beforehand. One request at a time, each the same S in the brokers:
that is a queue with one server. Requests that come at random with a load r = rate x S wait
r / (2 (1 - r)) S on average (Pollaczek and Khinchine, M/D/1), and with k requests always in flight
each waits for k - 1 others. So *double* is two in flight, or a load of two thirds; of somewhat more
where those that go together wait for a sync under way, as they do in the baseline.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import NamedTuple

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
from ottla.sim.history import Event
from ottla.sim.settings import RunConfig

BROKERS_MS = 2.6
"""What a batch takes in the brokers when it is alone: there and back between nodes, a sync on each,
turns. It is measured anew (one request always in flight); this is to set loads by."""
RECORDS = 400
WARM_UP = 40
"""Records that do not count: connections and ids are asked for."""
CLOSED_RECORDS = 240

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
    cells = (f"load {load:.0%}", broker.told(), f"{latency:.2f}")
    return Line(
        (*cells, f"{_open_ratio(measured, load, broker):.2f}", f"{expected:.2f}"),
        _reason(broker, f"a load of {load:.0%} makes it a queue with one server"),
    )


def _closed_line(measured: Measured, flight: int, broker: Broker) -> Line:
    latency = mean(measured[_closed_key(flight, broker)], "trip")
    ratio = _closed_ratio(measured, flight, broker)
    expected = _expected_closed(measured, flight) if broker in BEFORE else 1.0
    cells = (f"always {flight} in flight", broker.told(), f"{latency:.2f}")
    waits = f"each waits for {flight - 1} before it" if flight > 1 else "and there is no other"
    return Line((*cells, f"{ratio:.2f}", f"{expected:.2f}"), _reason(broker, waits))


def _reason(broker: Broker, queue: str) -> str:
    if broker in BEFORE:
        return f"One batch of the connection in Raft at a time: {queue}."
    if broker == BASELINE:
        return "The baseline: every batch goes into Raft as it comes, and may wait for a sync."
    return "Every batch goes into Raft as it comes: the mutex is held until enqueued, not longer."


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
    series = (*map(of, BROKERS[1:]), Series("a queue with one server", queue, published=True))
    title = "Mean latency, times that of the baseline, by load"
    return (Chart(title, "load", "times the baseline", series),)


def _findings(measured: Measured) -> Iterator[str]:
    plain, idempotent = BEFORE
    by_load = [f"{_open_ratio(measured, each, idempotent):.2f} at {each:.0%}" for each in LOADS]
    yield (
        "Before the fix the latency of an idempotent producer is this many times the baseline's, "
        f"by load: {', '.join(by_load)}; and {_closed_ratio(measured, 2, idempotent):.2f} with two "
        "requests always in flight. The issue says double, and not under which load."
    )
    same = [_open_ratio(measured, each, plain) for each in LOADS]
    yield (
        f"A plain producer pays the same there, {same[0]:.2f} to {same[-1]:.2f} times: what is "
        "slow is the connection. The baseline stands for v21.11, and for v22.1 with idempotence "
        "turned off in the broker."
    )
    after = [
        _open_ratio(measured, load, each)
        for load in LOADS
        for each in BROKERS
        if each.idempotent and each not in BEFORE
    ]
    yield f"With the fix idempotence costs nothing: {min(after):.3f} to {max(after):.3f} times."


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
