"""Experiment `pipelining`: what several requests in flight are worth (promise-S2).

The published figures are those of Sarama's pull request 2094. They hold more than a round trip can
explain: with one request in flight, 1 ms of round trip leaves 55,418 records per second, which is
as fast as it gets with six. So a line has a capacity, too, and one number is taken over: the
plateau, about 64 MB/s. How many records a request held is not said. With that capacity the figures
speak of 830 to 920 of 1,000 bytes, so 850 are sent here; 500 are what 500 kB hold to the letter.

All else follows: a request is written to the line, travels, is replicated and synced, and its
answer travels back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
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
from ottla.sim.history.history import Event
from ottla.sim.settings.settings import RunConfig

RECORD_BYTES = 1_000
CAPACITY = 64_000
"""Bytes per millisecond of the line from client to leader: the published plateau."""
PLATEAU = CAPACITY * 1_000 / RECORD_BYTES
"""Records per second that the line carries."""

BASE = RunConfig(
    profile="reference",
    idempotent=False,
    client_model="java",
    producers=1,
    consumers=0,
    arrivals="even",
    load_ms=1,
    record_bytes=RECORD_BYTES,
    client_bytes_per_ms=CAPACITY,
    client_jitter_us=50,
    jitter_us=50,
    sync_jitter_us=50,
    request_timeout_ms=30_000,
)


class Case(NamedTuple):
    """What varies."""

    batch: int
    rtt_ms: int
    in_flight: int
    idempotent: bool = False

    @property
    def key(self) -> Key:
        """The variant's."""
        return tuple(self)


PUBLISHED: dict[tuple[int, int], float] = {
    (140, 1): 5_494,
    (140, 2): 11_372,
    (140, 6): 32_999,
    (70, 1): 10_759,
    (70, 6): 64_800,
    (1, 1): 55_418,
    (1, 6): 63_646,
}
"""Records per second, by round trip in milliseconds and requests in flight."""
PUBLISHED_MEDIAN_MS = 161
"""Of a record's latency, at 140 ms with one request in flight."""
BATCHES = (850, 500)
CASES = (
    *(Case(batch, rtt, flight) for batch in BATCHES for rtt, flight in PUBLISHED),
    Case(850, 140, 5),
    Case(850, 140, 5, idempotent=True),
    Case(850, 140, 6, idempotent=True),
)


def _variant(case: Case) -> Variant:
    rounds = 3 if case.in_flight > 1 else 6
    config = BASE.with_(
        batch_records=case.batch,
        records=case.batch * (rounds * case.in_flight + 1),
        client_rtt_us=case.rtt_ms * 1_000,
        in_flight=case.in_flight,
        idempotent=case.idempotent,
    )
    return Variant(case.key, config)


def measure(rows: Sequence[Event], config: RunConfig) -> Figures:
    """Records per second, and what a request takes beyond its round trip and its writing."""
    requests = Requests(rows)
    written = config.batch_records * RECORD_BYTES * 1_000 / CAPACITY
    trips = requests.trips()
    inside = min(trips) - config.client_rtt_us - written
    return {
        "trip_ms": median(trips) / 1_000,
        "rate": requests.rate(config.batch_records, config.in_flight),
        "inside_ms": inside / 1_000,
    }


def report(measured: Measured) -> Report:
    """The table: each case beside what was published."""
    lines = tuple(_line(case, measured) for case in CASES)
    columns = (
        Column("round trip"),
        Column("in flight"),
        Column("records in a request"),
        Column("published, records/s"),
        Column("here, records/s"),
        Column("here / published"),
    )
    return Report(columns, lines, (_chart(measured),), tuple(_findings(measured)))


def _line(case: Case, measured: Measured) -> Line:
    rate, published = mean(measured[case.key], "rate"), _published(case)
    kind = ", idempotent" if case.idempotent else ""
    cells = (
        f"{case.rtt_ms} ms",
        f"{case.in_flight}{kind}",
        str(case.batch),
        f"{published:,.0f}" if published else "-",
        f"{rate:,.0f}",
        f"{rate / published:.2f}" if published else "-",
    )
    return Line(cells, _reason(case, measured))


def _published(case: Case) -> float | None:
    return None if case.idempotent else PUBLISHED.get((case.rtt_ms, case.in_flight))


def _reason(case: Case, measured: Measured) -> str:
    rate, inside = (mean(measured[case.key], name) for name in ("rate", "inside_ms"))
    written = case.batch * RECORD_BYTES / CAPACITY
    trip = case.rtt_ms + written + inside
    if rate > 0.95 * PLATEAU:
        what = f"The line is full: {written:.1f} ms to write a request, and always one to write."
    else:
        what = (
            f"{case.in_flight} in a trip of {trip:.1f} ms: {case.rtt_ms} on the way, {written:.1f} "
            f"to write it, {inside:.1f} in the brokers."
        )
    published = _published(case)
    if published is not None:
        return f"{what} {_difference(case, published, inside)}"
    if not case.idempotent:
        return f"{what} Not published."
    plain = mean(measured[case._replace(idempotent=False).key], "rate")
    return (
        f"{what} Not published; {rate / plain:.3f} times a plain producer with as many in flight."
    )


def _difference(case: Case, published: float, inside: float) -> str:
    """How many records a request must have held for the published rate: what is acknowledged in a
    trip divided by what is in flight, the trip growing with what is written."""
    way = (case.rtt_ms + inside) / 1_000
    if published > 0.97 * PLATEAU:
        least = PLATEAU * way / (case.in_flight - 1)
        return f"Theirs filled the line, for which {least:.0f} in a request are enough."
    held = published * way / (case.in_flight - published / PLATEAU)
    return f"The published rate asks for {held:.0f} records in a request."


def _chart(measured: Measured) -> Chart:
    def points(batch: int, rtt: int) -> tuple[tuple[float, float], ...]:
        return tuple(
            (flight, mean(measured[Case(batch, at, flight).key], "rate"))
            for at, flight in PUBLISHED
            if at == rtt
        )

    series: list[Series] = []
    for rtt in sorted({rtt for rtt, _ in PUBLISHED}):
        theirs = tuple((flight, rate) for (at, flight), rate in PUBLISHED.items() if at == rtt)
        series.append(Series(f"{rtt} ms, {BATCHES[0]} records", points(BATCHES[0], rtt)))
        series.append(Series(f"{rtt} ms, published", theirs, published=True))
    title = "Records per second by requests in flight"
    return Chart(title, "requests in flight", "records/s", tuple(series))


def _findings(measured: Measured) -> Iterator[str]:
    def rate(batch: int, rtt: int, flight: int, *, idempotent: bool = False) -> float:
        return mean(measured[Case(batch, rtt, flight, idempotent).key], "rate")

    best = BATCHES[0]
    yield (
        f"Six in flight instead of one are worth {rate(best, 140, 6) / rate(best, 140, 1):.1f} "
        f"times the throughput at 140 ms here, {PUBLISHED[140, 6] / PUBLISHED[140, 1]:.1f} times "
        f"in the publication; at 1 ms {rate(best, 1, 6) / rate(best, 1, 1):.2f} and "
        f"{PUBLISHED[1, 6] / PUBLISHED[1, 1]:.2f} times, the line being all but full either way."
    )
    for batch in BATCHES:
        ratios = [rate(batch, *each) / theirs for each, theirs in PUBLISHED.items()]
        yield (
            f"With {batch} records in a request the figures are {min(ratios):.2f} to "
            f"{max(ratios):.2f} of the published ones."
        )
    trip = mean(measured[Case(best, 140, 1).key], "trip_ms")
    yield (
        f"A request at 140 ms, alone, is acknowledged after {trip:.0f} ms; the publication's "
        f"records, which wait for their request as well, after {PUBLISHED_MEDIAN_MS} ms (median)."
    )
    for flight in (5, 6):
        same = rate(best, 140, flight, idempotent=True) / rate(best, 140, flight)
        yield f"Idempotent, with {flight} in flight, it is {same:.3f} of plain."


EXPERIMENT = Experiment(
    name="pipelining",
    title="What requests in flight are worth",
    question="How many records per second does one producer get acknowledged by one partition, by "
    "round trip to the leader and requests in flight?",
    published="Sarama pull request 2094 (IBM/sarama#2094): one partition, records of 1 kB, "
    "acks=all, batches of 500 kB.",
    conditions=(
        ("cluster", "three nodes, 0.4 ms between them, 0.3 ms for a sync; profile reference"),
        ("producer", "one, plain, acks=all; it always has more to send"),
        ("records", f"{RECORD_BYTES:,} bytes each"),
        ("line", f"{CAPACITY / 1000:g} MB/s from client to leader, the published plateau"),
        ("not modelled", "windows and slow start of TCP, the line between nodes, CPU time"),
    ),
    variants=tuple(_variant(case) for case in CASES),
    measure=measure,
    report=report,
    seeds=2,
)
