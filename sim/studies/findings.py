"""What the report of a study consists of: plain values, and how rows of SQL become them.

The pipeline fills a `Findings`, the page (`ottla.report.study.page`) writes it; neither knows the
other. A table's columns are named by its SQL, and the names say how they are shown:

| a column called | is shown as |
|---|---|
| `share`, or ending in `_share` | percent |
| ending in `_us` | milliseconds |
| ending in `_ms` or `_kb` | with its unit above the column |
| `point` | a point of coverage, in words |
| `x_low` and `x_high`, beside a column `x` | the 95 % interval of x, in the same cell |
| anything else | three significant digits, whole numbers whole; words; an invariant's id and name |

In every column NULL and NaN are shown as a dash, and values of other SQL types, such as dates and
lists, as text.

A chart's rows are `series`, `x`, `y`, `low`, `high` (the 95 % interval of y, or NULL for both;
these columns may be missing if y is no estimate), and maybe `published` (true: a figure from
elsewhere, drawn as a ring).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from math import isfinite, isinf, isnan
from typing import Any, TypeAlias

from ottla.raft.types import Micros
from ottla.sim.coverage.points import told
from ottla.sim.invariants.registry import INVARIANTS
from ottla.sim.studies.charts import Chart, Series, Span

Rows: TypeAlias = Sequence[Mapping[str, Any]]
"""The result of a query: a mapping per row, columns in the order of the query."""
KINDS = ("lines", "bars")
"""The kinds of charts."""
_UNITS = {"us": "ms", "ms": "ms", "kb": "kB"}
"""Units of columns with these endings; microseconds are shown as milliseconds."""
_INVARIANTS = {each.id: f"{each.id}, {each.name}" for each in INVARIANTS}
NOTHING = "\u2013"
"""Shown for NULL and NaN."""
INFINITE = "\u221e"
_MANY_DIGITS = 1e15
"""From here on not all digits of a float before the point are exact."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table."""

    head: str
    number: bool = True
    """Whether it has numbers, which are aligned right."""


@dataclass(frozen=True, slots=True)
class Table:
    """One table of the report, its cells as text."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Stage:
    """The cost of one stage of the pipeline."""

    name: str
    seconds: float
    rows: int = 0
    """Rows that it wrote."""
    bytes: int = 0
    """Bytes of the files that it wrote."""
    made_by: str = ""
    """The engines and commits that made it."""


@dataclass(frozen=True, slots=True)
class Worst:
    """One of the worst runs: which, why, and how to repeat it."""

    run_id: int
    seed: int
    variant: str
    """The variant's name in the study."""
    why: str
    """What is bad about it, in one line."""
    command: str
    """The command that repeats the run, with the same digest."""
    digest: str
    """The digest that the command prints, 16 hex digits; empty if the run broke."""
    at: Micros | None = None
    """When it went wrong; None: that is no moment, or an anomaly says it."""
    partition: int = 0
    """The partition in which it went wrong."""


@dataclass(frozen=True, slots=True)
class Breakdown:
    """A run that did not end properly, and what ended it."""

    seed: int
    variant: str
    """The variant's name in the study."""
    why: str
    """The exception, in one line."""
    command: str
    """The command that shows it again."""

    def __str__(self) -> str:
        """In one line.

        >>> print(Breakdown(7, "acks=1", "KeyError: 3", "ottla sim run --seed 7"))
        seed 7 of acks=1 broke: KeyError: 3; ottla sim run --seed 7
        """
        of = f" of {self.variant}" if self.variant else ""
        return f"seed {self.seed}{of} broke: {self.why}; {self.command}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """The results of a study."""

    name: str
    title: str
    question: str
    answer: str
    """One sentence, filled with numbers."""
    text: str
    """The text of the study's file."""
    command: str
    """The command that makes this report again."""
    seeds: int
    first: int
    variants: int
    runs: int
    judged: int
    """How many of the runs were judged in SQL."""
    share: float
    """The share of ok runs that were to be judged."""
    broke: int
    """Runs that broke; they count nowhere else."""
    verdicts: Table
    """By invariant: judged, broken; empty if all hold."""
    tables: tuple[Table, ...] = ()
    charts: tuple[Chart, ...] = ()
    worst: tuple[Worst, ...] = ()
    breakdowns: tuple[Breakdown, ...] = ()
    """The first of the runs that broke."""
    canary: str = ""
    """Which canary it was, and what noticed it."""
    versions: tuple[tuple[str, str], ...] = ()
    """Names of programs, and their versions."""
    stages: tuple[Stage, ...] = field(default=())


def table_of(title: str, rows: Rows, note: str = "") -> Table:
    """A table of the result of a query. See the module's docstring for the names of columns."""
    names = [each for each in (rows[0] if rows else ()) if not _is_end(each, rows[0])]
    columns = tuple(Column(head(each), number=_is_number(each, rows)) for each in names)
    full = {name: any(_needs_three(row, name) for row in rows) for name in names}
    cells = tuple(tuple(_cell(row, name, full=full[name]) for name in names) for row in rows)
    return Table(title, columns, cells, note)


def chart_of(title: str, kind: str, axes: tuple[str, str], rows: Rows) -> Chart:
    """A chart of the result of a query; `axes`: the names of x and y. Rows without y are left out.
    Raises `ValueError` for an unknown kind, an infinite number and a y below 0, `KeyError` for a
    missing column."""
    if kind not in KINDS:
        raise ValueError(f"{kind!r} is not a kind of chart; there are {', '.join(KINDS)}")
    for place, row in enumerate(rows, 1):
        _check_drawable(row, place)
    drawn = [row for row in rows if not (_lacks(row["y"]) or _lacks(row["x"]))]
    names = tuple(dict.fromkeys(str(row["x"]) for row in drawn)) if kind == "bars" else ()
    found: dict[str, list[Mapping[str, Any]]] = {}
    for row in drawn:
        found.setdefault(str(row["series"]), []).append(row)
    series = tuple(_series(name, each, names) for name, each in found.items())
    return Chart(title, axes[0], axes[1], series, names)


def _series(name: str, rows: Rows, names: tuple[str, ...]) -> Series:
    def place(row: Mapping[str, Any]) -> float:
        return float(names.index(str(row["x"])) if names else row["x"])

    ordered = sorted(rows, key=place)
    points = tuple((place(row), float(row["y"])) for row in ordered)
    uncertain = {"low", "high"} <= rows[0].keys()
    spans = tuple(_span(row) for row in ordered) if uncertain else ()
    return Series(name, points, bool(rows[0].get("published")), spans)


def _check_drawable(row: Mapping[str, Any], place: int) -> None:
    for name in ("x", "y", "low", "high"):
        value = row.get(name)
        if isinstance(value, float | Decimal) and isinf(value):
            raise ValueError(f"row {place}: {name} is infinite, which cannot be drawn")
    if not _lacks(row["y"]) and row["y"] < 0:
        raise ValueError(
            f"row {place}: y is {row['y']}, and axes begin at 0: draw its size, or make it a table"
        )


def _lacks(value: Any) -> bool:
    """Whether it is NULL or NaN."""
    return value is None or (isinstance(value, float | Decimal) and isnan(value))


def _span(row: Mapping[str, Any]) -> Span | None:
    low, high = row.get("low"), row.get("high")
    return None if _lacks(low) or _lacks(high) else (float(low or 0), float(high or 0))


def head(name: str) -> str:
    """The heading of a column."""
    stem, _, unit = name.rpartition("_")
    said = stem if stem and unit in _UNITS else name
    return said.replace("_", " ") + (f", {_UNITS[unit]}" if said is stem else "")


def _is_end(name: str, row: Mapping[str, Any]) -> bool:
    """Whether this column is an end of another's interval."""
    stem, _, end = name.rpartition("_")
    return end in {"low", "high"} and {stem, f"{stem}_low", f"{stem}_high"} <= row.keys()


def _is_number(name: str, rows: Rows) -> bool:
    return all(row[name] is None or _counts(row[name]) for row in rows)


def _counts(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _needs_three(row: Mapping[str, Any], name: str) -> bool:
    """Whether a number of this column needs its third digit; then all of them show it."""
    told = (shown(name, row.get(each)) for each in (name, f"{name}_low", f"{name}_high"))
    return any("." in each and len(each.replace(".", "").lstrip("-0")) > 2 for each in told)


def _cell(row: Mapping[str, Any], name: str, *, full: bool) -> str:
    value, low, high = row[name], row.get(f"{name}_low"), row.get(f"{name}_high")
    if low is None or high is None or value is None:
        return shown(name, value, full=full)
    low, high = (shown(name, each, full=full).removesuffix("\u00a0%") for each in (low, high))
    return f"{shown(name, value, full=full)} ({low} to {high})"


def shown(name: str, value: Any, *, full: bool = False) -> str:
    """A value as a person reads it, in the column `name`; `full`: with all of its digits."""
    if _lacks(value):
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not _counts(value):
        text = _text(value)
        return told(text) if name == "point" else _INVARIANTS.get(text, text)
    if name == "share" or name.endswith("_share"):
        return f"{percent(float(value))}\u00a0%"
    if name.endswith("_us"):
        return number(float(value) / 1_000, full=full)
    return f"{value:,}" if isinstance(value, int) else number(float(value), full=full)


def _text(value: Any) -> str:
    """The text of a value that is neither a number nor true or false: a word, a date, bytes, or
    several of these."""
    if isinstance(value, bytes | bytearray):
        return value.hex()
    if isinstance(value, Mapping):
        return ", ".join(f"{shown('', key)}: {shown('', each)}" for key, each in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(shown("", each) for each in value)
    return str(value)


def endless(value: float) -> str:
    """How a number without digits is written.

    >>> endless(float("inf")), endless(float("-inf"))
    ('∞', '-∞')
    """
    if isnan(value):
        return NOTHING
    return INFINITE if value > 0 else f"-{INFINITE}"


def number(value: float, *, full: bool = False) -> str:
    """A number with three significant digits, and all digits before the point unless they are too
    many. `full`: with zeros at the end, because its neighbours in a column have digits there.

    >>> number(0.012345), number(12.345), number(1234.5), number(2.0), number(2.8)
    ('0.0123', '12.3', '1,234', '2', '2.8')
    >>> number(1e30), number(0.1 + 0.2), number(-1.23456e16)
    ('1e+30', '0.3', '-1.23e+16')
    >>> number(2.8, full=True), number(0.99996, full=True), number(99.96, full=True)
    ('2.80', '1.00', '100')
    >>> number(1.0, full=True), number(20.0, full=True), number(0.0, full=True)
    ('1.00', '20.0', '0')
    """
    if not isfinite(value):
        return endless(value)
    if abs(value) >= _MANY_DIGITS:
        return f"{value:.3g}"
    if abs(value) >= 100 or value == 0 or (value == int(value) and not full):
        return f"{value:,.0f}"
    return f"{value:#.3g}".removesuffix(".") if full else f"{value:.3g}"


def counted(count: int, one: str) -> str:
    """A count and its noun, whose plural ends in s.

    >>> counted(1, "run"), counted(0, "run"), counted(1_200, "run")
    ('1 run', '0 runs', '1,200 runs')
    """
    return f"{count:,} {one}{'' if count == 1 else 's'}"


def percent(share: float) -> str:
    """A share in percent, without the sign. It shows 0 or 100 only for exactly none or all.

    >>> percent(0.5), percent(1.0), percent(0.99996), percent(0.0123), percent(0.000004)
    ('50', '100', '99.99', '1.23', '0.0004')
    >>> percent(0.0), percent(1 / 2_885_209), percent(0.9999999)
    ('0', '0.00003', '99.99')
    >>> percent(1.5), percent(float("inf")), percent(-0.5)
    ('150', '∞', '-50')
    """
    if not 0 <= share <= 1:  # a quotient that the study calls a share
        return number(share * 100)
    if share in (0.0, 1.0):
        return f"{share * 100:.0f}"
    value = share * 100
    if value > 99:
        return f"{min(value, 99.99):.4g}"
    if value < 0.001:
        return f"{Decimal(f'{value:.1g}'):f}"  # a float's own format has an exponent
    return f"{round(value, 4):.3g}"
