"""Histories for checkers that others wrote: rows as JSON, and operations as Jepsen writes them.

JSON has every row of the history, one object a line, with the columns of `history.py`.

EDN has the operations of clients and their outcomes, in the format of Jepsen's Kafka workload,
which Elle and Knossos read: a vector of maps, in order of time.

    {:index 0, :time 1200000, :process 0, :type :invoke, :f :send, :value [[:send 0 7]]}
    {:index 1, :time 1900000, :process 0, :type :ok, :f :send, :value [[:send 0 [3 7]]]}
    {:index 2, :time 2100000, :process 4, :type :ok, :f :poll, :value [[:poll {0 [[3 7]]}]]}

The first number of a `:send` is the partition, then comes the value, or `[offset value]` once the
offset is known. A `:poll` has all records of one answer. `:time` is in nanoseconds.

A process does one thing at a time, but a producer sends many records at once. So each record takes
a process that is free, and a process whose record was given up (`:info`) is never used again. Each
partition of a consumer is a process, too. A consumer asks again after an answer, and the history
does not say when: here its operation begins when the answer before ended, which is never too late.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ottla.sim.history.history import Event

_NS = 1_000
_ENDS = {"ok": "ok", "fail": "fail", "info": "info"}


class Operation(NamedTuple):
    """One line of a history of operations."""

    t_us: int
    process: int
    type: str
    """invoke, ok, fail or info."""
    f: str
    """send or poll."""
    value: str
    """In EDN."""
    error: str = ""


def json_lines(rows: Iterable[Event]) -> Iterator[str]:
    """Every row, as an object of its columns with a value."""
    return (json.dumps(row.told()) for row in rows)


def edn_lines(rows: Iterable[Event]) -> Iterator[str]:
    """The operations, as one vector."""
    opening = "["
    for index, each in enumerate(operations(rows)):
        error = f", :error :{each.error}" if each.error else ""
        yield (
            f"{opening}{{:index {index}, :time {each.t_us * _NS}, :process {each.process}, "
            f":type :{each.type}, :f :{each.f}, :value {each.value}{error}}}"
        )
        opening = " "
    yield "]" if opening == " " else "[]"


def operations(rows: Iterable[Event]) -> list[Operation]:
    """The operations of clients and their outcomes, in order of time."""
    found: list[Operation] = []
    processes, asked = _Processes(), dict[int, Event]()
    polls = _Polls(processes)
    for row in rows:
        if row.kind != "poll":
            found += polls.answered()
        if row.kind == "inv" and row.op is not None:
            asked[row.op] = row
            sent = f"[[:send {row.partition} {row.value}]]"
            found.append(Operation(row.t_us, processes.take(row.op), "invoke", "send", sent))
        elif row.kind in _ENDS and row.op in asked:
            found.append(_ended(row, asked.pop(row.op), processes))
        elif row.kind in {"fetch", "poll"}:
            polls.note(row)
    found += polls.answered()
    return sorted(found, key=lambda each: each.t_us)


def _ended(row: Event, asked: Event, processes: _Processes) -> Operation:
    """A record is acknowledged, refused or given up. With acks=0 its offset is unknown."""
    known = row.kind == "ok" and row.off is not None and row.off >= 0
    value = f"[{row.off} {asked.value}]" if known else f"{asked.value}"
    assert asked.op is not None, "an inv row has it"
    process = processes.leave(asked.op, again=row.kind != "info")
    sent = f"[[:send {asked.partition} {value}]]"
    return Operation(row.t_us, process, _ENDS[row.kind], "send", sent, row.code or "")


class _Processes:
    """The processes of records: a record has one until it has ended."""

    def __init__(self) -> None:
        self._made, self._free = 0, list[int]()
        self._of: dict[int, int] = {}

    def take(self, op: int) -> int:
        """A process for this record: the lowest one that is free."""
        self._free.sort(reverse=True)
        self._of[op] = self._free.pop() if self._free else self.fresh()
        return self._of[op]

    def fresh(self) -> int:
        """A new process."""
        self._made += 1
        return self._made - 1

    def leave(self, op: int, *, again: bool) -> int:
        """The process of a record that has ended. `again`: it may be used again."""
        process = self._of.pop(op)
        if again:
            self._free.append(process)
        return process


class _Polls:
    """The records that consumers got; the rows of one answer follow each other."""

    def __init__(self, processes: _Processes):
        self._processes = processes
        self._of: dict[tuple[int | None, int | None], int] = {}
        self._asked: dict[int, int] = {}
        self._fetch: Event | None = None
        self._given: list[Event] = []

    def note(self, row: Event) -> None:
        """A fetch was answered, or one of its records delivered."""
        if row.kind == "poll":
            self._given.append(row)
        else:
            self._fetch = row

    def answered(self) -> Iterator[Operation]:
        """The answer whose rows have come, if it had records."""
        fetch, given = self._fetch, self._given
        self._fetch, self._given = None, []
        if fetch is None:
            return
        who = fetch.client, fetch.partition
        if who not in self._of:
            self._of[who] = self._processes.fresh()
        process = self._of[who]
        if given:
            pairs = " ".join(f"[{each.off} {each.value}]" for each in given)
            polled = f"[[:poll {{{fetch.partition} [{pairs}]}}]]"
            yield Operation(self._asked.get(process, 0), process, "invoke", "poll", "[[:poll]]")
            yield Operation(fetch.t_us, process, "ok", "poll", polled)
        self._asked[process] = fetch.t_us
