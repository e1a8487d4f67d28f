"""`ottla study audit`: is anything in a topic missing, there twice, or out of order?

Findings go to standard output, one line each, and the summary last; progress goes to standard
error. Status 1: something was found. 2: a mistake of the user's, or no broker answers any more.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from ottla.sim_cli.telling import Line, say
from ottla.study_cli.studies import StudyUsageError

if TYPE_CHECKING:
    from ottla.sim.studies.audit.job import Job

DEEP = "-Xss16m -XX:+UseSerialGC"
"""Spark looks through the text of errors with an expression that needs a deep stack."""
SHOWN_EVERY_S = 0.5


def audit(
    *,
    bootstrap: Annotated[str, typer.Option(metavar="HOST:PORT", help="A broker, or several.")],
    topic: Annotated[str, typer.Option(help="The topic.")],
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="Folder from which an audit goes on; without it, it begins anew."),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="End where the topic ends now.")] = False,
    seconds: Annotated[
        float | None, typer.Option("--for", min=1, help="Seconds; else until it is stopped.")
    ] = None,
    master: Annotated[str | None, typer.Option(help="Spark's master, such as local[4].")] = None,
    timeout: Annotated[int, typer.Option(min=1, help="Seconds without any answer.")] = 60,
    batch: Annotated[int, typer.Option(min=1, help="Records of a micro-batch.")] = 200_000,
) -> None:
    """Audit a topic of any Kafka-compatible broker for gaps, duplicates and reorders."""
    if once and seconds is not None:
        raise StudyUsageError("--once ends by itself; leave out --for")
    _check_spark(master)
    from ottla.sim.studies.audit.job import Job
    from ottla.sim.studies.topics.asked import SourceError

    line = Line()
    with ExitStack() as stack:
        folder = checkpoint or Path(stack.enter_context(TemporaryDirectory()))
        job = Job(bootstrap, topic, folder, line.over, timeout, batch)
        try:
            job.begin()
            _run(job, line, once=once, seconds=seconds, master=master)
        except SourceError as error:
            line.clear()
            raise StudyUsageError(str(error)) from None
        line.clear()
        say(job.audit.told())
        raise typer.Exit(0 if job.audit.clean else 1)


def _check_spark(master: str | None) -> None:
    """What would be noticed only once the topic was looked up."""
    from ottla.sim.studies.engine import spark_lacks

    remote = master or os.environ.get("SPARK_REMOTE", "")
    if remote.startswith("sc://"):
        raise StudyUsageError(
            f"{remote}: an audit keeps its ledger beside Spark's driver; give --master local[2], "
            f"or that of a cluster"
        )
    lacking = spark_lacks(master)
    if lacking is not None:
        raise StudyUsageError(lacking)


def _run(job: Job, line: Line, *, once: bool, seconds: float | None, master: str | None) -> None:
    """The query, until its time is up or a signal comes."""
    from ottla.sim.studies.spark import SETTINGS, Spark, spark_session

    if master is None or master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # else a warning, and a guess
    told = threading.Event()
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, lambda *_: told.set())
    spark = Spark(spark_session(master, {**SETTINGS, "spark.driver.extraJavaOptions": DEEP}))
    shown = 0.0

    def stopped() -> bool:
        nonlocal shown
        # Only on a terminal: whoever reads the output wants findings, and the summary last.
        if sys.stderr.isatty() and time.monotonic() - shown > SHOWN_EVERY_S:
            shown = time.monotonic()
            line.show(job.said)
        return told.is_set()

    try:
        job.run(spark.session, once=once, seconds=seconds, stopped=stopped)
    finally:
        spark.close()
