"""A study as a person writes it: one TOML file, read into plain values.

    name, title, question, seeds    what it is, and how many seeds by default
    swarm = true                    each run draws what the settings leave open
    coverage = true                 what each run reached is stored
    [settings]                      settings of all runs (`sim/settings/settings.py`)
    [grid]                          a setting and its values; all combinations are run
    [[variant]]                     settings that go together, with a `label`; times the grid; one
                                    that a line leaves out is as in [settings], or at its default
    [answer]                        sql for one row, and the text that its columns fill
    [[table]], [[chart]]            title and sql of what the report shows
    [worst]                         sql whose first rows name the worst runs (run_id; maybe at_us,
                                    when it went bad, and partition, where), and the text that
                                    their columns fill

Among settings `failure` names a plan of `sim/nemesis/failures.py`, or "none"; `load_ms` has to
leave it the time to happen. Errors of a file are one line that names the key; `binding.py` checks
its SQL.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from itertools import product
from math import prod
from pathlib import Path
from typing import Any, TypeAlias, cast

from ottla.broker.arguments.spelling import called, listed
from ottla.broker.errors import ConfigError
from ottla.sim.nemesis.failures import FAILURES
from ottla.sim.nemesis.nemesis import check_faults
from ottla.sim.settings.settings import RunConfig
from ottla.sim.settings.settings_file import from_toml
from ottla.sim.settings.spelling import as_written
from ottla.sim.studies.shapes import wrong_block, wrong_grid, wrong_top

MAX_VARIANTS = 10_000
NO_FAILURE = "none"
Cell: TypeAlias = int | str | bool
_FAILURE, _LABEL = "failure", "label"
_NEMESIS = ("fault_every_ms", "faults")
"""Settings of the nemesis, which takes no part in a run without swarm."""
_KINDS = ("lines", "bars")


class StudyError(Exception):
    """The study cannot be done as requested; the text is one line that says why."""


class UntrustedError(StudyError):
    """No figure of the study can be trusted."""


class DisagreementError(UntrustedError):
    """SQL and Python judge a run differently: one of them is wrong."""


class VoidStudyError(UntrustedError):
    """The canary was not noticed: the checkers are blind."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One configuration that is run with every seed."""

    number: int
    """From 0, in the order of the file."""
    cells: Mapping[str, Cell]
    """The settings that vary, with their values here."""
    config: RunConfig
    failure: str | None
    """Name of the plan of what goes wrong; None: nothing."""
    line: str
    """The label of its line in the file; empty: none."""
    label: str
    """Its name for people: its line's label, and its values of the grid."""
    held: frozenset[str] = frozenset()
    """Settings that the swarm does not draw because they were given, even with the default. They
    are no part of a `RunConfig`'s equality, but they change what is run. Empty without swarm."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One sentence: `text`, its {names} filled from the single row of `sql`. For the worst runs: a
    sentence for each of the first rows."""

    sql: str
    text: str


@dataclass(frozen=True, slots=True)
class TableAsked:
    """A table of the report."""

    title: str
    note: str
    sql: str


@dataclass(frozen=True, slots=True)
class ChartAsked:
    """A picture of the report; `sql` gives series, x, y, low, high."""

    title: str
    kind: str
    """lines or bars."""
    x: str
    y: str
    sql: str


@dataclass(frozen=True, slots=True)
class Study:
    """See the module's docstring."""

    name: str
    title: str
    question: str
    seeds: int
    swarm: bool
    coverage: bool
    variants: tuple[Variant, ...]
    answer: Answer
    tables: tuple[TableAsked, ...]
    charts: tuple[ChartAsked, ...]
    worst: Answer | None
    """Which runs are worst; None: those that broke, failed, lost records or stood still for
    longest."""
    text: str
    """The text of the file: the plan contains it, and workers read it."""

    @property
    def decides(self) -> Mapping[str, object]:
        """What runs and tables depend on, by names for people; the rest is only for the report."""
        return {
            "swarm": self.swarm,
            "coverage": self.coverage,
            "the list of variants": list(self.variants),
        }


def catalogue() -> dict[str, str]:
    """The texts of the studies that ship, by name."""
    folder = files("ottla.sim.studies") / "catalogue"
    found = folder.iterdir() if folder.is_dir() else iter(())
    texts = {each.name: each.read_text(encoding="utf-8") for each in found}
    return {name[:-5]: text for name, text in sorted(texts.items()) if name.endswith(".toml")}


def read(path_or_name: str) -> Study:
    """A study that ships, by name, or any other one by its path. Raises `StudyError`."""
    shipped = catalogue()
    if path_or_name in shipped:
        return parse(shipped[path_or_name])
    path = Path(path_or_name)
    try:
        return parse(path.read_text(encoding="utf-8-sig"))  # some editors add a byte order mark
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise StudyError(
            f"study {called(path_or_name)}: line {line} is not UTF-8; save the file as UTF-8"
        ) from None
    except (OSError, ValueError) as error:  # ValueError: an impossible file name
        if path.suffix or path.exists() or len(path.parts) != 1:
            told = getattr(error, "strerror", None) or str(error)
            raise StudyError(f"study {called(path_or_name)}: {told}; name a TOML file") from None
        there = listed(shipped) or "none that ships"
        raise StudyError(
            f"no such study: {called(path_or_name)}; there are {there}; or name a TOML file"
        ) from None


@lru_cache(maxsize=4)
def parse(text: str) -> Study:
    """A study from its text. Raises `StudyError`."""
    try:
        told = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also for numbers of thousands of digits
        raise StudyError(f"study: not TOML: {error}") from None
    _refuse(wrong_top(told))
    return Study(
        told["name"],
        told["title"],
        told["question"],
        told["seeds"],
        told.get("swarm", False),
        told.get("coverage", False),
        _require_distinct(tuple(_variants(told))),
        _answer(told["answer"], "answer"),
        tuple(_tables(told.get("table", []))),
        tuple(_charts(told.get("chart", []))),
        _answer(told["worst"], "worst") if "worst" in told else None,
        text,
    )


# --- what is run ----------------------------------------------------------------------------------


def _variants(told: Mapping[str, Any]) -> Iterator[Variant]:
    settings, grid = told.get("settings", {}), told.get("grid", {})
    lines: Sequence[Any] = told.get("variant", [{}])
    _check_grid(settings, grid, lines)
    left_out = {name: _default(name, settings) for line in lines for name in line}
    for number, (line, *values) in enumerate(product(lines, *grid.values())):
        cells = {**left_out, **line, **dict(zip(grid, values, strict=True))}
        given = {**settings, **line, **dict(zip(grid, values, strict=True))}
        given.pop(_LABEL, None)
        swarm = told.get("swarm", False)
        failure = _failure(given.pop(_FAILURE, NO_FAILURE), swarm=swarm)
        label = str(line.get(_LABEL, ""))
        varies = {**({} if label else line), **dict(zip(grid, values, strict=True))}
        config = _config(given, swarm=swarm)
        _check_room(failure, config)
        held = config.said if swarm else frozenset()
        yield Variant(number, cells, config, failure, label, _label(label, varies), held)


def _require_distinct(variants: tuple[Variant, ...]) -> tuple[Variant, ...]:
    """Returns them unchanged if their labels and their settings are all different. Raises
    `StudyError`."""
    labels: set[str] = set()
    known: dict[tuple[object, ...], str] = {}
    for each in variants:
        if each.label in labels:
            raise StudyError(f"variant: two are called {each.label!r}; write another label")
        labels.add(each.label)
        does = (each.config, each.held, each.failure)
        other = known.setdefault(does, each.label)
        if other != each.label:
            raise StudyError(
                f"variant: {other!r} and {each.label!r} are the same settings; leave one out"
            )
    return variants


def _label(line: str, cells: Mapping[str, Cell]) -> str:
    told = [f"{value}" if name == _FAILURE else f"{name}={value}" for name, value in cells.items()]
    return ", ".join([line, *told] if line else told) or "as it is"


def _default(name: str, settings: Mapping[str, Any]) -> Any:
    """The value in a line that leaves a setting out."""
    if name in settings:
        return settings[name]
    return NO_FAILURE if name == _FAILURE else getattr(RunConfig(), name, "")


def _check_grid(settings: Mapping[str, Any], grid: Mapping[str, Any], lines: Sequence[Any]) -> None:
    if _LABEL in settings or _LABEL in grid:
        raise StudyError(f"{_LABEL} is no setting; it names a [[variant]], so write it there")
    for key, values in grid.items():
        _refuse(wrong_grid(key, values))
        if key in settings:
            raise StudyError(f"{called(key)} is in [grid] and in [settings]; leave one of them out")
    if not lines:
        raise StudyError("variant has no line; write [[variant]] and settings below it")
    for line in lines:
        _check_line(line, grid)
    count = len(lines) * prod(len(values) for values in grid.values())
    if count > MAX_VARIANTS:
        raise StudyError(f"grid: {count} variants, at most {MAX_VARIANTS}")


def _check_line(line: Any, grid: Mapping[str, Any]) -> None:
    if not isinstance(line, dict):
        raise StudyError(f"variant is {as_written(line)}; write [[variant]] and settings below it")
    label = line.get(_LABEL, "one")
    if not isinstance(label, str) or not label.strip():
        raise StudyError(f"variant.label is {as_written(label)}; write a name for people")
    for key in line:
        if key in grid:
            raise StudyError(
                f"{called(key)} is in [[variant]] and in [grid]; leave one of them out"
            )


def _failure(name: Any, *, swarm: bool) -> str | None:
    known = [each.name for each in FAILURES]
    if name == NO_FAILURE:
        return None
    if name not in known:
        raise StudyError(
            f"failure is {as_written(name)}; write one of {listed([NO_FAILURE, *known])}"
        )
    if swarm:
        raise StudyError(f"failure is {name!r}; with swarm the nemesis decides what goes wrong")
    return str(name)


def _check_room(name: str | None, config: RunConfig) -> None:
    for each in FAILURES:
        if each.name == name:
            try:
                each.check(config)
            except ConfigError as error:
                raise StudyError(str(error)) from None


def _config(given: Mapping[str, Any], *, swarm: bool) -> RunConfig:
    try:
        config = from_toml("", given)
        if not swarm:  # the swarm makes unset settings fit
            config.check_elections()
            config.check_lag()
    except ConfigError as error:
        raise StudyError(f"settings: {error}") from None
    _check_faults(config, swarm=swarm)
    return config


def _check_faults(config: RunConfig, *, swarm: bool) -> None:
    for name in () if swarm else _NEMESIS:
        if value := getattr(config, name):
            raise StudyError(
                f"settings: {name} is {value!r}; without swarm there is no nemesis, name a failure"
            )
    try:
        check_faults(config)
    except ConfigError as error:
        raise StudyError(f"settings: faults: {error}") from None


# --- what is asked --------------------------------------------------------------------------------


def _answer(told: Any, where: str) -> Answer:
    given = _texts(told, where, ("sql", "text"))
    return Answer(given["sql"], given["text"])


def _tables(told: Sequence[Any]) -> Iterator[TableAsked]:
    for each in told:
        given = _texts(each, "table", ("title", "sql"), ("note",))
        yield TableAsked(given["title"], given.get("note", ""), given["sql"])


def _charts(told: Sequence[Any]) -> Iterator[ChartAsked]:
    for each in told:
        given = _texts(each, "chart", ("title", "kind", "x", "y", "sql"))
        if given["kind"] not in _KINDS:
            raise StudyError(f"chart.kind is {given['kind']!r}; write {' or '.join(_KINDS)}")
        yield ChartAsked(given["title"], given["kind"], given["x"], given["y"], given["sql"])


def _texts(
    told: Any, where: str, needed: Sequence[str], more: Sequence[str] = ()
) -> Mapping[str, str]:
    """A block of texts."""
    _refuse(wrong_block(told, where, needed, more))
    return cast("Mapping[str, str]", told)


def _refuse(wrong: str | None) -> None:
    """Raises `StudyError` if anything is wrong."""
    if wrong is not None:
        raise StudyError(wrong)
