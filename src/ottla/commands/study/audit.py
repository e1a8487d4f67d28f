"""`ottla study audit`: is anything in a topic missing, there twice, or out of order?

Findings go to standard output, one line each; the summary comes last. Progress goes to standard
error. The status says how it ended:

* 1: something was found.
* 2: a mistake of the user; or no broker answers any more; or a partition had no leader at the end,
  so that not all of the topic was read; or a bug of ours, with its traceback.
* 130 and 143: SIGINT or SIGTERM came, and nothing had been found until then.

A signal that ends the command often ends its JVM as well: `timeout` sends SIGTERM to both. So after
a signal, all output of Spark is dropped. The ledger has what was counted.
"""

from __future__ import annotations

import math
import os
import traceback
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from ottla.commands.sim.telling import Line, say
from ottla.commands.study.stopping import Ear, Stopped
from ottla.commands.study.studies import StudyUsageError
from ottla.commands.usage import folder_option

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ottla.sim.studies.audit.job import Job

JVM = "-Xss16m -Xrs"
"""Spark searches the text of errors with a regular expression that needs a deep stack. With `-Xrs`,
SIGTERM ends the JVM at once. A JVM that cleans up first prints every error on the way."""
_BESIDE = "an audit needs Spark's driver in its own process"
_GIVE = "give --master local[2], or that of a cluster"


def audit(
    *,
    bootstrap: Annotated[str, typer.Option(metavar="HOST:PORT", help="A broker, or several.")],
    topic: Annotated[str, typer.Option(help="The topic.")],
    checkpoint: Annotated[
        Path | None,
        folder_option("Folder in which an audit can be continued; without it, it begins anew."),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="End where the topic ends now.")] = False,
    seconds: Annotated[
        float | None,
        typer.Option(
            "--for", min=1, help="Seconds after which it ends; by default it runs until stopped."
        ),
    ] = None,
    master: Annotated[str | None, typer.Option(help="Spark's master, such as local[4].")] = None,
    timeout: Annotated[
        int, typer.Option(min=1, help="Seconds without any answer after which it gives up.")
    ] = 60,
    batch: Annotated[int, typer.Option(min=1, help="Records of a micro-batch.")] = 200_000,
) -> None:
    """Audit a topic of any Kafka-compatible broker for gaps, duplicates and reorders.

    Status 0: nothing was found. 1: something was found. 2: the topic, or part of it, could not be
    audited. 130 after SIGINT, 143 after SIGTERM: it was stopped, and had found nothing until then.
    """
    _check_time(once, seconds)
    ear, line = Ear(), Line()
    with ExitStack() as stack:
        stack.enter_context(_unforeseen())
        stack.enter_context(line)
        stack.callback(line.clear)
        line.doing("looking the topic up")
        place = checkpoint or Path(stack.enter_context(TemporaryDirectory()))
        job = None
        with suppress(Stopped):
            with ear.leaving():
                _check_spark(master)
                job = _begun(bootstrap, topic, place, line.over, (timeout, batch))
                stack.callback(job.close)
            _run(job, line, ear, once=once, seconds=seconds, master=master)
        line.clear()
        for each in () if job is None else job.unread:
            say(each)
        say(_summary(topic, job, ear))
        raise typer.Exit(_status(job, ear))


@contextmanager
def _unforeseen() -> Iterator[None]:
    """End with status 2 for any unexpected error: Python's own status, 1, would say that something
    was found."""
    try:
        yield
    except (typer.Exit, typer.Abort, typer.TyperException):
        raise
    except Exception as error:
        traceback.print_exc()
        raise typer.Exit(2) from error


def _status(job: Job | None, ear: Ear) -> int:
    """The exit status. Findings come first, then a signal, then partitions that were not read."""
    if job is None:
        return ear.status
    return int(not job.audit.clean) or ear.status or 2 * bool(job.unread)


def _check_time(once: bool, seconds: float | None) -> None:
    if once and seconds is not None:
        raise StudyUsageError("--once ends by itself; leave out --for")
    if seconds is not None and not math.isfinite(seconds):
        raise StudyUsageError(f"--for {seconds}: write a number of seconds from 1 on")


def _check_spark(master: str | None) -> None:
    """Check Spark before the topic is looked up, so that the error comes early."""
    from ottla.sim.studies.engine import spark_lacks

    server = os.environ.get("SPARK_REMOTE")
    if server is not None:  # any value: even for local[2], PySpark starts a server
        raise StudyUsageError(f"SPARK_REMOTE={server}: {_BESIDE}; unset it, and {_GIVE}")
    if master is not None and master.startswith("sc://"):
        raise StudyUsageError(f"{master}: {_BESIDE}; {_GIVE}")
    lacking = spark_lacks(master)
    if lacking is not None:
        raise StudyUsageError(lacking)


def _begun(
    bootstrap: str, topic: str, folder: Path, tell: Callable[[str], None], limits: tuple[int, int]
) -> Job:
    """The job, after a look at topic and checkpoint. `limits` are its timeout and its batch."""
    from ottla.sim.studies.audit.job import Job
    from ottla.sim.studies.topics.asked import SourceError

    job = Job(bootstrap, topic, folder, tell, *limits)
    try:
        job.begin()
    except SourceError as error:
        raise StudyUsageError(str(error)) from None
    return job


def _summary(topic: str, job: Job | None, ear: Ear) -> str:
    """The last line."""
    told = "" if job is None else job.said
    if ear.heard is None:
        return told
    stopped = f"{topic.strip()}: stopped by {ear.heard.name}"
    if job is None or not job.audit.partitions:
        return f"{stopped} before anything was read"
    return f"{stopped}; so far {told.removeprefix(f'{job.topic}: ')}"


def _run(
    job: Job, line: Line, ear: Ear, *, once: bool, seconds: float | None, master: str | None
) -> None:
    """Run the query until its time is up or a signal comes."""
    from ottla.sim.studies.study import StudyError
    from ottla.sim.studies.topics.asked import SourceError

    if master is None or master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # else a warning, and a guess
    try:
        with TemporaryDirectory(prefix="ottla-audit-", ignore_cleanup_errors=True) as scratch:
            _query(job, line, ear, scratch, once=once, seconds=seconds, master=master)
    except (SourceError, StudyError) as error:
        if ear.heard is None:
            line.clear()
            raise StudyUsageError(str(error)) from None
    except Exception:
        if ear.heard is None:
            raise


def _query(
    job: Job,
    line: Line,
    ear: Ear,
    scratch: str,
    *,
    once: bool,
    seconds: float | None,
    master: str | None,
) -> None:
    """Run the query. `scratch` is for files that the JVM leaves behind when it ends at once."""
    from ottla.sim.studies.spark import SETTINGS, Spark, spark_session

    options = f'{JVM} "-Djava.io.tmpdir={scratch}"'
    line.doing("starting Spark")
    spark = Spark(spark_session(master, {**SETTINGS, "spark.driver.extraJavaOptions": options}))
    line.doing("starting the query")
    shown = job.said

    def stopped() -> bool:
        nonlocal shown
        if job.said != shown:
            shown = job.said
            line.show(shown)
        return ear.heard is not None

    try:
        if ear.heard is None:
            job.run(spark.session, once=once, seconds=seconds, stopped=stopped)
    finally:
        line.doing("ending Spark")
        spark.close()
