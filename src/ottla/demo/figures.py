"""Makes the table of a run, and the verdicts about the run itself, from its results. Pure.

Each column names its source, because different programs counted the numbers of one table. No column
may be 0 (`earned`): a run in which no request was parked proves nothing about parking.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median_low

from ottla.demo.audit import Verdict, verdict
from ottla.demo.ledger import Ledger, place_of
from ottla.demo.losses import Loss
from ottla.demo.result import Figure
from ottla.demo.settings import MIN_LEADER_FAULTS, PROBE, DemoSettings
from ottla.demo.timeline import Timeline


def _failovers(timelines: Sequence[Timeline]) -> list[Figure]:
    gaps = [change.micros for line in timelines for change in line.changes if change.failover]
    p50 = median_low(gaps or [0]) / 1000
    why = "a partition got a new leader because the old one failed"
    return [
        Figure("failovers", len(gaps), "", why),
        Figure("without a leader, p50", p50, "ms", "from the fault to the next election"),
        Figure("without a leader, max", max(gaps, default=0) / 1000, "ms", "the longest of them"),
    ]


def figures_of_all(
    stored: int, timelines: Sequence[Timeline], retries: int, counters: Mapping[str, int]
) -> list[Figure]:
    """The table of a run with acks=all; every column must be above 0."""
    counted = "counted by the brokers"
    return [
        Figure("records", stored, "", "in the log, after everything"),
        *_failovers(timelines),
        Figure(
            "retries",
            retries,
            "",
            "batches that came to the brokers beyond those in the log and those refused for good",
        ),
        Figure("duplicates answered", counters["duplicates_answered"], "", counted),
        Figure("duplicates parked", counters["duplicates_parked"], "", counted),
        Figure("gaps refused", counters["gaps_refused"], "", counted),
        Figure("step-downs", counters["step_downs"], "", counted),
    ]


def figures_of_losses(
    acked: int, stored: int, timelines: Sequence[Timeline], losses: Sequence[Loss]
) -> list[Figure]:
    """The table of a run with acks=1 or acks=0."""
    explained = sum(each.explained for each in losses)
    return [
        Figure("records acknowledged", acked, "", "success told by the clients"),
        Figure("records in the log", stored, "", "after everything"),
        *_failovers(timelines),
        Figure("acknowledged and lost", len(losses), "", "no consumer can read them"),
        Figure("losses explained", explained, "", "found in a truncation, byte for byte"),
    ]


def about_the_run(
    settings: DemoSettings, ledgers: Sequence[Ledger], leader_faults: int, trouble: Sequence[str]
) -> list[Verdict]:
    """Whether the run was as planned: enough records, enough faults, no error of a client."""
    sent = sum(each.sent_count for each in ledgers)
    refused = sum(len(each.failed) for each in ledgers if each.producer == PROBE)
    meant = f", {refused:,} of them to be refused" if refused else ""
    short = [] if sent >= settings.records else [f"{sent:,} of {settings.records:,}"]
    few = [] if leader_faults >= MIN_LEADER_FAULTS else [f"{leader_faults} of {MIN_LEADER_FAULTS}"]
    return [
        verdict(
            "Enough was written",
            f"{sent:,} records sent{meant}; at least {settings.records:,} were asked for",
            short,
        ),
        verdict(
            "Enough went wrong",
            f"{leader_faults} times a leader was killed, isolated or paused",
            [*few, *trouble],
        ),
        _clients(settings, ledgers),
    ]


def _clients(settings: DemoSettings, ledgers: Sequence[Ledger]) -> Verdict:
    told = [f"{ledger.producer}: {text}" for ledger in ledgers for text in ledger.problems]
    if settings.idempotent:
        told += [
            f"{ledger.producer}: {place_of(failure.value)} failed: {failure.reason}"
            for ledger in ledgers
            if ledger.producer != PROBE
            for failure in ledger.failed
        ]
    acked = sum(each.acked_count for each in ledgers)
    return verdict(
        "The clients are content", f"{acked:,} records acknowledged, no error left", told
    )


def earned(figures: Sequence[Figure]) -> Verdict:
    """The verdict that no column of the table is 0."""
    names = [figure.name for figure in figures if figure.value <= 0]
    return verdict("Every figure is earned", f"{len(figures)} figures above 0", names)


def about_losses(losses: Sequence[Loss]) -> list[Verdict]:
    """Verdicts for acks=1 and acks=0: the run must lose records, and must explain each loss."""
    unexplained = [
        f"partition {each.partition}: {place_of(each.ack.value)}, offset {each.ack.offset}"
        for each in losses
        if not each.explained
    ]
    none = [] if losses else ["no acknowledged record was lost"]
    return [
        verdict("Losses were provoked", f"{len(losses):,} acknowledged records are lost", none),
        verdict(
            "Every loss is explained",
            f"{len(losses):,} lost values looked up in the entries that truncations dropped",
            unexplained,
        ),
    ]
