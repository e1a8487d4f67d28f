"""`ottla compare`: a broker beside a profile, or two profiles, case by case.

The command reads arguments and prints; `ottla.compare` does the work. Its exit status is 0 if
nothing differs (or only what is listed as explained), 1 if something does, 2 if nothing could be
compared.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from ottla.commands import usage
from ottla.commands.sim.asking import check_out
from ottla.commands.sim.explaining import check_page, write
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


class _Files(NamedTuple):
    """What is written, beside what is printed."""

    html: Path | None
    json: Path | None
    junit: Path | None
    record: Path | None
    """The folder of a recording."""


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
    html: Annotated[Path | None, usage.file_option("Also write a page.", "--html")] = None,
    as_json: Annotated[
        Path | None, usage.file_option("Also write every answer as JSON.", "--json")
    ] = None,
    junit: Annotated[
        Path | None, usage.file_option("Also write a JUnit report for a CI.", "--junit")
    ] = None,
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
) -> None:
    """Compare a broker with a profile, case by case: what each answers, and where they differ.

    A target with an address may be any broker. Its topics are new and deleted afterwards; nothing
    else on it is touched. Without an address, profiles run in this process under virtual time.
    Ends with status 1 if an answer differs that is not explained, and with 2 if nothing could be
    compared.
    """
    from ottla.compare.running import Comparison

    with _told_plainly():
        if listing:
            _list(_cases(cases))
            return
        profile = usage.check_profile(against, "--against")
        left, right, live = _brokers(target, replay, profile, wire=wire)
        check_page(html)
        for path in (as_json, junit):
            check_out(path)
        explanations, found = _explanations(explained), _cases(cases)
        with right, left:
            comparison = Comparison(left, right, profile, explanations, live)
            status = _play(comparison, found, _Files(html, as_json, junit, record))
    raise typer.Exit(status)


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


def _brokers(
    target: str | None, replay: Path | None, against: str, *, wire: bool
) -> tuple[Broker, Broker, bool]:
    """The two brokers, and whether the target is one of its own. Raises `UsageError`."""
    from ottla.compare.brokers import LiveBroker, ProfileBroker, WireBroker
    from ottla.compare.recordings import RecordedBroker

    if (target is None) == (replay is None):
        raise UsageError("--target or --replay is wanted, and only one of them")
    profile: Callable[[str], Broker] = WireBroker if wire else ProfileBroker
    if replay is not None:
        return RecordedBroker(replay), profile(against), True
    address = _ADDRESS.fullmatch(str(target))
    if address is not None:
        host, port = address["host"].strip("[]"), int(address["port"])
        return LiveBroker(host, port), profile(against), True
    address_too = ", or an address such as localhost:9092"
    name = usage.check_profile(str(target), "--target", address_too)
    return profile(name), profile(against), False


def _play(comparison: Comparison, cases: list[Case], files: _Files) -> int:
    """Play all cases, print what comes of each, write the files. Returns the exit status."""
    from ottla.compare.telling import closing_lines, result_lines

    names = f"{comparison.target.name} and {comparison.other.name}"
    if files.record is not None:
        _record(files.record, comparison, None)
    # Refused clients are what cases are about; nobody wants to read of them in the log.
    logging.getLogger("ottla").addHandler(logging.NullHandler())
    line, every = Line(), len(cases)
    with interruptible(line, lambda: _interrupted(comparison, every, files)):
        line.doing(f"playing {cases[0].name} to {names}")
        for number, result in enumerate(comparison.run(cases), 1):
            for each in result_lines(result):
                line.over(usage.one_line(each))
            if files.record is not None:
                _record(files.record, comparison, result)
            coming = cases[number].name if number < every else "the end"
            line.show(f"{number} of {every} cases, next {coming}")
        line.clear()
    for told in closing_lines(comparison):
        say(told)
    _write(files, comparison)
    if all(each.left_out for each in comparison.results):
        raise UsageError("every case was left out, so nothing was compared")
    return comparison.status


def _interrupted(comparison: Comparison, every: int, files: _Files) -> str:
    kept = NOTHING if files.record is None else f"{files.record} has their answers"
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


def _write(files: _Files, comparison: Comparison) -> None:
    from ottla.compare.formats import in_json, in_junit

    if files.json is not None:
        write(files.json, in_json(comparison))
    if files.junit is not None:
        write(files.junit, in_junit(comparison))
    if files.html is not None:
        from ottla.report.compare.page import page

        write(files.html, page(comparison))
