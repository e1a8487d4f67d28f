"""Runs the demo from the first leader to the report.

write      producers write, the nemesis does its steps, the sampler takes samples, all at once
collect    the stores are read back, and a consumer reads everything
audit      pure functions compare it all
report     table, checks and picture, on the terminal and as a page
"""

from __future__ import annotations

import importlib.metadata
import time
from concurrent.futures import Future
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from ottla.demo import audit, figures
from ottla.demo.collect import Logs, consume, dropped_records, evidence, read_stores
from ottla.demo.console import Console
from ottla.demo.losses import Loss, explain, groups
from ottla.demo.nemesis import LEADER_FAULTS, MissingError, carry_out, plan
from ottla.demo.producers import AiokafkaWriter, ConfluentWriter
from ottla.demo.report import write_report
from ottla.demo.result import Figure, Result
from ottla.demo.sampler import sample
from ottla.demo.settings import PARTITIONS, TOPIC, DemoSettings
from ottla.demo.stage import Stage
from ottla.demo.timeline import Timeline, timeline
from ottla.demo.work import Work

CONFLUENT_SHARE = 0.7
LOOK_EVERY = 0.1
JOIN_SECONDS = 60.0


class Outcome(NamedTuple):
    """What `run_demo` returns."""

    passed: bool
    report: Path


def run_demo(settings: DemoSettings) -> Outcome:
    """Run the demo, print its results, write the report. A check that fails raises nothing."""
    console = Console(settings)
    with console.beating():
        result = _perform(settings, console)
        console.doing("writing the report")
        report = write_report(result)
    console.end(result, report)
    return Outcome(result.passed, report)


def _perform(settings: DemoSettings, console: Console) -> Result:
    """Do everything that needs the cluster."""
    with Stage(settings) as stage, closing(console):
        of_confluent = round(settings.records * CONFLUENT_SHARE)
        work = Work(
            [
                ConfluentWriter(settings, stage.bootstrap, of_confluent),
                AiokafkaWriter(settings, stage.bootstrap, settings.records - of_confluent),
            ]
        )
        console.begin(stage)
        trouble = _write(stage, work, settings, console)
        console.say("reading every replica's log back")
        logs = Logs(stage.run(read_stores(stage.cluster)))
        console.say("reading everything with a consumer")
        consumed = consume(stage.bootstrap)
        console.say("comparing")
        result = _result(stage, work, logs, consumed, trouble)
        console.doing("stopping the cluster")
    return result


def _write(stage: Stage, work: Work, settings: DemoSettings, console: Console) -> list[str]:
    """Let the writers and the nemesis work; returns everything that did not go as planned."""
    sampling = stage.spawn(sample(stage, work.ledgers))
    for writer in work.writers:
        writer.start()
    steps = plan(settings)
    faults = stage.spawn(carry_out(stage, work, steps))
    trouble = _watch(faults, stage, work, console, len(steps))
    for each in trouble:
        console.say(each)
    work.faults_over()
    deadline = time.monotonic() + JOIN_SECONDS
    for writer in work.writers:
        while writer.is_alive() and time.monotonic() < deadline:
            console.progress(stage, work, len(steps))
            time.sleep(LOOK_EVERY)
        if writer.is_alive():
            trouble.append(f"{writer.ledger.producer} does not end")
    console.finished(stage, work, len(steps))
    sampling.cancel()
    failed = stage.cluster.describe().nodes.values()
    return [*trouble, *(f"node {each.node} failed: {each.error}" for each in failed if each.error)]


def _watch(
    faults: Future[None], stage: Stage, work: Work, console: Console, steps: int
) -> list[str]:
    while not faults.done():
        console.progress(stage, work, steps)
        time.sleep(LOOK_EVERY)
    error = faults.exception()
    if error is None:
        return []
    if isinstance(error, MissingError):
        return [f"{stage.now_doing}: {error}"]
    raise error


def _result(
    stage: Stage,
    work: Work,
    logs: Logs,
    consumed: list[list[tuple[int, bytes]]],
    trouble: list[str],
) -> Result:
    settings = stage.settings
    events, ended = list(stage.cluster.events), stage.samples[-1].at
    lines = [timeline(events, TOPIC, each, ended) for each in range(PARTITIONS)]
    found = evidence(work, logs, consumed)
    losses = explain(audit.lost_messages(found), dropped_records(events))
    table = _table(stage, work, logs, lines, losses)
    faults = sum(deed.fault in {*LEADER_FAULTS, "lose"} for deed in stage.deeds)
    verdicts = audit.examine(found, idempotent=settings.idempotent)
    if not settings.idempotent:
        verdicts = [*figures.about_losses(losses), *verdicts]
    return Result(
        settings,
        table,
        [
            *verdicts,
            *figures.about_the_run(settings, work.ledgers, faults, trouble),
            figures.earned(table),
        ],
        lines,
        stage.samples,
        stage.deeds,
        losses,
        groups(losses),
        sum(each.acked_count for each in work.ledgers),
        stage.started,
        ended,
        _clients(),
    )


def _table(
    stage: Stage, work: Work, logs: Logs, lines: list[Timeline], losses: list[Loss]
) -> list[Figure]:
    stored = sum(map(len, logs.records))
    if not stage.settings.idempotent:
        acked = sum(each.acked_count for each in work.ledgers)
        return figures.figures_of_losses(acked, stored, lines, losses)
    counters = stage.cluster.counters.as_dict()
    retries = counters["batches_received"] - logs.batches - len(work.probe.failed)
    return figures.figures_of_all(stored, lines, retries, counters)


def _clients() -> str:
    names = ("confluent-kafka", "aiokafka")
    return ", ".join(f"{name} {importlib.metadata.version(name)}" for name in names)
