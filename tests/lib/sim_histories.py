"""Labelled histories: text files under tests/sim/invariants/histories, and what they say in full.

One history after another, each with a name, the invariants that do not hold in it, and its rows:

    == what it shows
    expect sim-I01
    inv op=0..1
    commit hw=2

A row is a kind and columns. `a..b` makes a row for each number (several ranges advance together),
`1,2` repeats that for each item. A missing column has the default of its kind (`DEFAULTS`).
By default, `op`, `value`, `off` and `seq` of a record are equal, as in a correct history. `p` is
short for partition, `~` for a blank; `chain` and `state_hash` are names. `wait US` lets time pass;
every row takes 10 us.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

from ottla.sim.history.history import COLUMNS, KINDS, Event

FOLDER = Path(__file__).parents[1] / "sim" / "invariants" / "histories"
STEP_US = 10
Columns: TypeAlias = dict[str, Any]

_NAMES = ("chain", "state_hash")
_TEXTS = ("code", *_NAMES)
_RUN = ("phase", "fault")
_CLIENTS = ("inv", "send", "ok", "fail", "info", "error", "answer", "check", "step")
_CONSUMERS = ("fetch", "poll", "learn")
_RECORDS = ("poll", "final")
_ENTRIES = ("append", "apply")
_IN_A_TERM = (
    "append",
    "apply",
    "commit",
    "epoch",
    "fetch",
    "final",
    "leader",
    "named",
    "stepdown",
)


@dataclass
class History:
    """One labelled history."""

    name: str
    file: str
    broken: frozenset[str] = frozenset()
    """Ids of exactly those invariants that do not hold."""
    numbers: dict[str, int] = field(default_factory=dict)
    """Figures it must have, by the name of the measured invariant."""
    causes: list[str] = field(default_factory=list)
    """Why there are copies in the log, in their order."""
    events: list[Event] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.file}: {self.name}"


def histories(*files: str) -> list[History]:
    """All labelled histories, or those of these files."""
    paths = [FOLDER / each for each in files] or sorted(FOLDER.glob("*.txt"))
    return [each for path in paths for each in read(path.read_text(encoding="utf-8"), path.name)]


def read(text: str, file: str = "") -> list[History]:
    """The histories of one file. Raises ValueError naming the line that makes no sense."""
    found: list[History] = []
    reader = _Reader()
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        try:
            if words[0] == "==":
                found.append(History(" ".join(words[1:]), file))
                reader = _Reader()
            else:
                reader.line(found[-1], words)
        except (KeyError, ValueError, IndexError) as error:
            raise ValueError(f"{file}:{number}: {line!r}: {error}") from error
    return found


class _Reader:
    """Reads the lines of one history."""

    def __init__(self) -> None:
        self._now = 0
        self._set: Columns = {}

    def line(self, history: History, words: list[str]) -> None:
        """One line: a label, something about time or defaults, or rows."""
        word, *rest = words
        if word == "expect":
            history.broken = frozenset(rest) - {"none"}
        elif word == "number":
            history.numbers[rest[0]] = int(rest[1])
        elif word == "copies":
            history.causes = rest
        elif word == "wait":
            self._now += int(rest[0])
        elif word == "set":
            self._set = dict(_columns(rest))
        elif word in KINDS:
            for columns in expand({**self._set, **dict(_columns(rest))}):
                self._now += STEP_US
                full = complete(word, columns)
                history.events.append(Event(len(history.events), self._now, word, **full))
        else:
            raise ValueError(f"no kind {word!r}")


def _columns(words: list[str]) -> Iterator[tuple[str, str]]:
    for word in words:
        name, _, text = word.partition("=")
        name = "partition" if name == "p" else name
        if name not in COLUMNS or not text:
            raise ValueError(f"no column {name!r}")
        yield name, text.replace("~", " ")


def expand(columns: dict[str, str]) -> Iterator[Columns]:
    """The rows that one line stands for."""
    lists = {name: text.split(",") for name, text in columns.items() if name != "code"}
    ranges = {name: _range(text) for name, text in columns.items() if ".." in text}
    lengths = {len(numbers) for numbers in ranges.values()}
    if len(lengths) > 1:
        raise ValueError(f"ranges of different lengths: {sorted(lengths)}")
    outer = {name: items for name, items in lists.items() if name not in ranges}
    for items in product(*outer.values()):
        fixed = dict(zip(outer, items, strict=True)) | {
            name: text for name, text in columns.items() if name == "code"
        }
        for place in range(max(lengths, default=1)):
            yield {
                name: _value(name, fixed[name]) if name in fixed else ranges[name][place]
                for name in columns
            }


def _range(text: str) -> list[int]:
    first, _, last = text.partition("..")
    return list(range(int(first), int(last) + 1))


def _value(name: str, text: str) -> int | str | None:
    if text == "-":
        return None
    return text if name in _TEXTS else int(text)


def label(name: object) -> int:
    """The number that stands for a name of a chain or state."""
    return int.from_bytes(blake2b(str(name).encode(), digest_size=7).digest(), "big")


Default: TypeAlias = Callable[[Columns], Any]


def _same(column: str, kinds: tuple[str, ...], *, of: str) -> tuple[str, tuple[str, ...], Default]:
    return column, kinds, lambda columns: columns.get(of)


def _fixed(column: str, kinds: tuple[str, ...], value: object) -> tuple[str, Any, Default]:
    return column, kinds, lambda _: value


_NODES = tuple(kind for kind in KINDS if kind not in (*_RUN, *_CLIENTS, *_CONSUMERS, "close"))

DEFAULTS: tuple[tuple[str, tuple[str, ...], Default], ...] = (
    _fixed("partition", tuple(kind for kind in KINDS if kind not in _RUN), 0),
    _fixed("node", (*_NODES, "ok", "answer", "check", "fetch", "learn"), 1),
    _fixed("inc", _NODES, 1),
    _fixed("term", _IN_A_TERM, 1),
    _fixed("client", _CLIENTS, 1),
    _fixed("client", _CONSUMERS, 9),
    _fixed("acks", ("inv", "ok", "answer"), -1),
    _same("value", ("inv",), of="op"),
    _same("off", ("ok",), of="op"),
    _same("value", _RECORDS, of="off"),
    _same("seq", _RECORDS, of="off"),
    _fixed("pid", (*_RECORDS, "send", "error", "decide", "expire"), 7),
    _fixed("epoch", (*_RECORDS, "send", "error", "decide"), 0),
    _same("seq", ("send", "error"), of="op"),
    _same("seq_last", ("send", "error", "decide", "answer"), of="seq"),
    _fixed("aux", ("commit", "final"), 1),
    _fixed("aux", ("leader",), 0),
    _fixed("hw", ("logstart",), 99),
    _fixed("log_index", ("logstart", "epoch"), 9),
    _fixed("cand", ("named",), 1),
    ("aux", ("expire",), lambda columns: columns["log_index"] - 1),
    _same("log_index", ("commit",), of="hw"),
    _fixed("aux", ("topic",), 1),
    _fixed("code", ("truncate",), "F"),
    _fixed("code", ("snapshot",), "installed"),
    ("chain", _ENTRIES, lambda columns: f"e{columns['log_index']}"),
    ("chain", ("leader",), lambda columns: f"e{columns['log_index'] - 1}"),
    ("chain", ("final",), lambda columns: f"r{columns['off']}"),
)
"""What a column is when a line does not say: column, kinds, and how to tell."""


def complete(kind: str, columns: Columns) -> Columns:
    """All columns of a row, names turned into numbers."""
    full = dict(columns)
    for column, kinds, default in DEFAULTS:
        if kind in kinds and column not in full:
            full[column] = default(full)
    for name in _NAMES:
        if full.get(name) is not None:
            full[name] = label(full[name])
    return full
