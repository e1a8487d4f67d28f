"""The command `ottla demo`: its options, and the checks before it begins.

Ctrl-C ends it with status 130 and one line; nothing is kept. The cluster is stopped. The process
does not wait for the clients' threads, because these would wait for their answers.
"""

from __future__ import annotations

import math
import os
import signal
import sys
from contextlib import suppress
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from ottla.commands.usage import UsageError, check_profile, folder_option

if TYPE_CHECKING:
    from ottla.demo.run import Outcome
    from ottla.demo.settings import DemoSettings

CLIENTS = {"confluent_kafka": "confluent-kafka", "aiokafka": "aiokafka"}
"""The packages of the clients, by the name under which each is imported."""
INTERRUPTED = 128 + signal.SIGINT
MOST_RECORDS = 100_000_000
"""Each record takes memory in the ledger that the audit reads."""


class Acks(StrEnum):
    """What a producer waits for."""

    ALL = "all"
    LEADER = "1"
    NONE = "0"


def demo(
    *,
    acks: Annotated[Acks, typer.Option(help="What producers wait for.")] = Acks.ALL,
    records: Annotated[
        int, typer.Option(min=300, max=MOST_RECORDS, help="Write at least this many records.")
    ] = 120_000,
    seconds: Annotated[
        float, typer.Option(min=0.5, max=600, help="Spread the writing over this time.")
    ] = 15.0,
    seed: Annotated[
        int,
        typer.Option(
            min=0, max=2**63 - 1, help="Random seed of elections and of the order of faults."
        ),
    ] = 1,
    profile: Annotated[
        str,
        typer.Option(help="Which broker's rules apply to idempotent producers."),
    ] = "reference-strict",
    out: Annotated[Path, folder_option("Folder for the report.", "PATH")] = Path("out"),
    show: Annotated[bool, typer.Option("--open", help="Open the report in a browser.")] = False,
) -> None:
    """Write through failing leaders, then check every record.

    Ends with status 1 when a check fails.
    """
    _check_clients()
    check_profile(profile)
    _check_report(seconds, out)
    from ottla.demo.settings import DemoSettings

    settings = DemoSettings(
        acks=acks.value, records=records, seconds=seconds, seed=seed, profile=profile, out=out
    )
    outcome = _run(settings)
    if show:
        typer.launch(str(outcome.report))
    raise typer.Exit(0 if outcome.passed else 1)


def _check_clients() -> None:
    missing = [package for name, package in CLIENTS.items() if find_spec(name) is None]
    if missing:
        raise UsageError(
            f"the demo drives real clients, of which {' and '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} not installed: pip install 'ottla[demo]'"
        )


def _check_report(seconds: float, out: Path) -> None:
    """Check where the report goes, now and not after half a minute."""
    import tempfile

    if math.isnan(seconds):
        raise UsageError("--seconds: nan is no time")
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass
    except OSError as error:
        raise UsageError(f"--out {out}: {error.strerror}; name another folder") from None


def _run(settings: DemoSettings) -> Outcome:
    try:
        from ottla.demo.run import run_demo

        return run_demo(settings)
    except KeyboardInterrupt:
        _leave()


def _leave() -> NoReturn:
    with suppress(OSError):  # the reader may have been interrupted, too
        sys.stderr.write("ottla: interrupted; nothing is kept\n")
        sys.stderr.flush()
        sys.stdout.flush()
    os._exit(INTERRUPTED)
