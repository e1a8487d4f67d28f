"""`ottla compare`: a broker beside a profile, or two profiles, case by case.

The command reads arguments and prints; `ottla.compare` does the work. Its exit status is 0 if
nothing differs (or only what is listed as explained), 1 if something does, 2 if nothing could be
compared.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ottla.commands import usage
from ottla.commands.compare_files import AsJson, Files, Html, Junit
from ottla.commands.compare_fuzz import OUT, SEED, check_fuzz, hunt
from ottla.commands.sim.interrupting import NOTHING, interruptible
from ottla.commands.sim.telling import Line, say
from ottla.commands.usage import UsageError, refused

if TYPE_CHECKING:
    from ottla.compare.brokers import Broker
    from ottla.compare.case import Case
    from ottla.compare.explained import Explanation
    from ottla.compare.running import Comparison, Result

_ADDRESS = re.compile(r"(?P<host>[^\s:]+|\[[0-9a-fA-F:]+\]):(?P<port>\d{1,5})")

Target = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT|PROFILE",
        help="The broker to compare: the address of any broker, or one of Ottla's profiles.",
    ),
]
AGAINST = "kafka"
"""The profile that a broker is compared with if none is named: the newest one of Kafka."""
Against = Annotated[
    str,
    typer.Option(
        metavar="PROFILE",
        help="The profile that it should be like; kafka is the newest one of Kafka.",
    ),
]
Cases = Annotated[
    list[str] | None,
    typer.Option(
        metavar="GLOB",
        help="Only these cases: a glob over their names, or a file or folder of yours (*.toml). "
        "May be repeated.",
    ),
]


Fuzz = Annotated[
    int | None, typer.Option(metavar="N", min=1, help="Instead of cases: N random requests.")
]
Seed = Annotated[
    int | None,
    typer.Option(help=f"Of --fuzz: the same seed, the same requests.  [default: {SEED}]"),
]
Out = Annotated[
    Path | None, usage.folder_option(f"Of --fuzz: where cases of differences go.  [default: {OUT}]")
]


def compare(
    *,
    target: Target = None,
    against: Against = AGAINST,
    cases: Cases = None,
    wire: Annotated[
        bool, typer.Option("--wire", help="Profiles serve over TCP, in real time.")
    ] = False,
    listing: Annotated[
        bool, typer.Option("--list", help="Only print which cases there are.")
    ] = False,
    html: Html = None,
    as_json: AsJson = None,
    junit: Junit = None,
    record: Annotated[
        Path | None, usage.folder_option("Keep the target's answers in this folder.")
    ] = None,
    replay: Annotated[
        Path | None, usage.folder_option("Instead of a target: answers that --record has kept.")
    ] = None,
    explained: Annotated[
        Path | None,
        usage.file_option("A list of differences with their reasons, instead of Ottla's own."),
    ] = None,
    fuzz: Fuzz = None,
    seed: Seed = None,
    out: Out = None,
) -> None:
    """Compare a broker with a profile, case by case: what each answers, and where they differ.

    A target with an address may be any broker. Its topics are new and deleted afterwards; nothing
    else on it is touched. Without an address, profiles run in this process under virtual time.
    Ends with status 1 if an answer differs that is not explained, and with 2 if nothing could be
    compared, or not all; then reports have what was compared.
    """
    from ottla.compare.running import Comparison

    with _told_plainly():
        if listing:
            _list(_cases(cases))
            return
        no_fuzz = {"--cases": cases, "--record": record, "--replay": replay}
        draw = check_fuzz(fuzz, seed, out, no_fuzz)
        profile = usage.check_profile(against, "--against")
        left, live = _target(target, replay, wire=wire)
        right = _profile(profile, wire=wire)
        files = Files(html, as_json, junit)
        files.check()
        explanations, found = _explanations(explained), [] if draw else _cases(cases)
        # Refused clients are what this is about; nobody wants to read of them in the log.
        logging.getLogger("ottla").addHandler(logging.NullHandler())
        with right, left:
            comparison = Comparison(left, right, profile, explanations, live)
            with reported(comparison, files):
                _play(comparison, found, record) if draw is None else hunt(comparison, draw)
            _end(comparison, files)
    raise typer.Exit(comparison.status)


@contextmanager
def _told_plainly() -> Iterator[None]:
    """Report whatever ends a comparison in one line."""
    from ottla.compare.errors import CompareError

    try:
        yield
    except CompareError as error:
        raise UsageError(str(error)) from None
    except KeyboardInterrupt as interrupt:
        told = getattr(interrupt, "__notes__", None) or [NOTHING]
        with suppress(OSError):  # the reader may have been interrupted, too
            typer.echo(f"ottla: interrupted; {told[0]}", err=True)
        raise


@contextmanager
def reported(comparison: Comparison, files: Files) -> Iterator[None]:
    """If the comparison ends too early, print and write what it has by then. A broker that had
    stopped in the middle left no report of what was found before."""
    from ottla.compare.errors import CompareError

    try:
        yield
    except (CompareError, UsageError) as error:
        comparison.ended = str(error)
        drawn = comparison.drawn
        if comparison.results or (drawn is not None and drawn.steps):
            _tell_figures(comparison)
            try:
                files.write(comparison)
            except UsageError as other:
                raise UsageError(f"{error}; and {other}") from None
        raise


def _cases(globs: list[str] | None) -> list[Case]:
    from ottla.compare.finding import load_cases

    return load_cases(globs or ["*"])


def _list(cases: list[Case]) -> None:
    from ottla.compare.telling import listed

    for each in cases:
        say(usage.one_line(listed(each)))


def _explanations(path: Path | None) -> list[Explanation]:
    from ottla.compare.explained import EXPLAINED, load_explanations

    return load_explanations(EXPLAINED if path is None else path)


def _target(target: str | None, replay: Path | None, *, wire: bool) -> tuple[Broker, bool]:
    """The broker to compare, and whether it is one of its own. Raises `UsageError`."""
    from ottla.compare.live import LiveBroker
    from ottla.compare.recordings import RecordedBroker

    if (target is None) == (replay is None):
        raise UsageError("--target or --replay is wanted, and only one of them")
    if replay is not None:
        return RecordedBroker(replay), True
    address = _ADDRESS.fullmatch(str(target))
    if address is not None:
        return LiveBroker(address["host"].strip("[]"), int(address["port"])), True
    address_too = ", or an address such as localhost:9092"
    return _profile(usage.check_profile(str(target), "--target", address_too), wire=wire), False


def _profile(name: str, *, wire: bool) -> Broker:
    from ottla.compare.brokers import ProfileBroker
    from ottla.compare.live import WireBroker

    return WireBroker(name) if wire else ProfileBroker(name)


def _play(comparison: Comparison, cases: list[Case], record: Path | None) -> None:
    """Play all cases, and print what comes of each."""
    from ottla.compare.telling import result_lines

    names = f"{comparison.target.name} and {comparison.other.name}"
    if record is not None:
        _record(record, comparison, None)
    line, every = Line(), len(cases)
    with interruptible(line, lambda: _interrupted(comparison, every, record)):
        line.doing(f"playing {cases[0].name} to {names}")
        for number, result in enumerate(comparison.run(cases), 1):
            for each in result_lines(result):
                line.over(usage.one_line(each))
            if record is not None:
                _record(record, comparison, result)
            coming = cases[number].name if number < every else "the end"
            line.show(f"{number} of {every} cases, next {coming}")
        line.clear()


def _end(comparison: Comparison, files: Files) -> None:
    """Print the figures, and write the files. Raises `UsageError` if nothing was compared."""
    _tell_figures(comparison)
    files.write(comparison)
    if not comparison.compared:
        what = "case" if comparison.drawn is None else "sequence"
        raise UsageError(f"every {what} was left out, so nothing was compared")


def _tell_figures(comparison: Comparison) -> None:
    from ottla.compare.telling import closing_lines

    for told in closing_lines(comparison):
        say(usage.one_line(told))


def _interrupted(comparison: Comparison, every: int, record: Path | None) -> str:
    kept = NOTHING if record is None else f"{record} has their answers"
    return f"{len(comparison.results)} of {every} cases are done, {kept}"


def _record(folder: Path, comparison: Comparison, result: Result | None) -> None:
    from ottla.compare.recordings import record, record_broker

    try:
        if result is None:
            record_broker(folder, comparison.target.name, comparison.target.versions())
        elif result.target is not None:
            record(folder, result.target)
    except OSError as error:
        raise UsageError(f"--record {folder}: {refused(error, 'another folder')}") from None
