"""Bronze: the events of many runs as one table, and the one function that makes it.

`histories` runs seeds one after the other and yields record batches of about 20,000 rows, in a
process of the pool or in a task of Spark. So its memory does not grow with the number of runs, and
both engines have the same rows. It imports only what a plain interpreter with pyarrow, msgpack,
sortedcontainers and the CRC library has.

A row is an event of a run: columns that identify the run, those of `ottla.sim.history.history`, and
a text for people. After the history of a run come rows of other kinds; `eid` goes on:

| kind | what |
|---|---|
| run | one per run: `code` its verdict, `told` why, `t_us` simulated, `off` its rows (1) |
| noticed | of runs that failed: `code` the first invariant that was seen to be broken |
| verdict | of judged runs: `code` an invariant that `judge` finds broken; one row each |
| breakdown | the run broke: `code` which exception, `told` its text (2); it has no other row (3) |
| reached | with coverage: `code` a predicate, or an abstract state, that the run reached |

(1) And `aux` steps of the kernel, `log_index` choices, `chain` its digest as signed 64 bits. (2) In
one line, with characters that are not UTF-8 escaped. A run whose values do not fit the columns
broke. (3) If a run kills its process, the parent writes this row: `code` is then ProcessDied.

`ottla.sim.studies.versions` says what changed from version to version.

Every run whose verdict is not ok is judged, and a share of the others. That share is drawn by a
hash, so it is the same everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from itertools import repeat
from typing import Any, NamedTuple, TypeAlias

from ottla.sim.coverage.facts import Facts
from ottla.sim.coverage.points import name_of
from ottla.sim.coverage.predicates import PREDICATES
from ottla.sim.coverage.states import states_of
from ottla.sim.history.history import COLUMNS, Event
from ottla.sim.studies.study import Study, parse
from ottla.sim.studies.trial import Trial, broken_in, trial
from ottla.sim.studies.versions import KEY, VERSION

FLUSH_ROWS = 20_000
_DIED = "its process died of it twice, the second time without any other run"
_TEXTS = frozenset({"kind", "code"})
SCHEMA: dict[str, str] = {
    "run_id": "BIGINT",
    "seed": "BIGINT",
    "variant": "INT",
    "judged": "BOOLEAN",
    **{name: "VARCHAR" if name in _TEXTS else "BIGINT" for name in COLUMNS},
    "told": "VARCHAR",
}
"""Columns of bronze, with their SQL types."""
KINDS = ("run", "noticed", "verdict", "breakdown", "reached")
"""Kinds of rows that are no events of a history."""
Batch: TypeAlias = Any
"""A `pyarrow.RecordBatch`."""


@dataclass(frozen=True, slots=True)
class Work:
    """What is to be run, in the form that is sent to the process that runs it."""

    study: str
    """The text of the study."""
    first: int
    """The first seed."""
    share: float
    """The share of runs that are judged although nothing is wrong with them."""
    deadly: tuple[int, ...] = ()
    """Runs that kill their process: they are reported, and not run."""

    def place(self, run_id: int) -> tuple[int, int]:
        """Seed and number of the variant of a run."""
        place, variant = divmod(run_id, len(parse(self.study).variants))
        return self.first + place, variant

    def named(self, run_id: int) -> str:
        """The name of a run in messages."""
        seed, variant = self.place(run_id)
        return f"seed {seed} of {parse(self.study).variants[variant].label}"

    def chosen(self, run_id: int) -> bool:
        """Whether a run is judged whatever its verdict is."""
        drawn = blake2b(f"{self.first}/{run_id}".encode(), digest_size=8).digest()
        return int.from_bytes(drawn, "big") < self.share * 2**64


class Head(NamedTuple):
    """The columns before those of a history, the same in all rows of a run."""

    run_id: int
    seed: int
    variant: int
    judged: bool


@cache
def schema() -> Any:
    """The schema of the record batches; its metadata has the version."""
    import pyarrow as pa

    types = {"BIGINT": pa.int64(), "INT": pa.int32(), "BOOLEAN": pa.bool_(), "VARCHAR": pa.string()}
    columns = [(name, types[told]) for name, told in SCHEMA.items()]
    return pa.schema(columns, metadata={KEY: str(VERSION)})


class _Page:
    """Collects rows until there are enough for a batch."""

    def __init__(self) -> None:
        self._runs: list[Batch] = []
        self._rows = 0

    def __len__(self) -> int:
        return self._rows

    def add(self, run: Batch) -> None:
        """Add the rows of one run."""
        self._runs.append(run)
        self._rows += run.num_rows

    def batch(self) -> Batch:
        """The collected rows."""
        import pyarrow as pa

        (whole,) = pa.Table.from_batches(self._runs).combine_chunks().to_batches()
        return whole


def histories(work: Work, runs: Iterable[int]) -> Iterator[Batch]:
    """Rows of these runs. A run that breaks gives one row of kind *breakdown*."""
    for batch, _, _ in counted(work, runs):
        if batch is not None:
            yield batch


def counted(work: Work, runs: Iterable[int]) -> Iterator[tuple[Batch | None, int, int]]:
    """As `histories`, for callers that show progress: after each run the batch to be written, if
    any, how many runs are done, and how many rows they have."""
    study, page, over, rows = parse(work.study), _Page(), 0, 0
    for over, run_id in enumerate(runs, 1):
        run = _told(work, study, run_id)
        page.add(run)
        rows += run.num_rows
        if len(page) >= FLUSH_ROWS:
            yield page.batch(), over, rows
            page = _Page()
        else:
            yield None, over, rows
    if len(page):
        yield page.batch(), over, rows


def _told(work: Work, study: Study, run_id: int) -> Batch:
    """The rows of a run, converted to columns before it counts as done: a value that does not fit
    breaks only this run, not all that would be written with it."""
    if run_id in work.deadly:
        return deadly(work, run_id)
    seed, variant = work.place(run_id)
    chosen = work.chosen(run_id)
    try:
        done = trial(study, study.variants[variant], seed)
        if done.broke:
            return _breakdown(work, run_id, *done.broke)
        head = Head(run_id, seed, variant, chosen or done.verdict != "ok")
        return _columns(head, _rows(study, done, judged=head.judged), done.told)
    except Exception as error:  # noqa: BLE001 - one broken run must not cost the others
        return _breakdown(work, run_id, type(error).__name__, _in_one_line(error))


def deadly(work: Work, run_id: int) -> Batch:
    """The row of a run that kills its process."""
    return _breakdown(work, run_id, "ProcessDied", _DIED)


def _breakdown(work: Work, run_id: int, code: str, told: str) -> Batch:
    seed, variant = work.place(run_id)
    row = Event(0, 0, "breakdown", code=code)
    return _columns(Head(run_id, seed, variant, False), [row], told)


def _columns(head: Head, events: list[Event], told: str | None) -> Batch:
    """The rows of one run; the text belongs to the last one."""
    import pyarrow as pa

    heads = [[value] * len(events) for value in head]
    says = [*repeat(None, len(events) - 1), told]
    columns = [*heads, *map(list, zip(*events, strict=True)), says]
    arrays = [
        pa.array(column, type=field.type) for column, field in zip(columns, schema(), strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema())


def _in_one_line(error: Exception) -> str:
    text = str(error).encode(errors="backslashreplace").decode()
    return " ".join(text.split())


def _rows(study: Study, done: Trial, *, judged: bool) -> list[Event]:
    """The rows of a run, the one of kind *run* last."""
    rows = done.rows
    told = [] if done.noticed is None else [("noticed", done.noticed)]
    if study.coverage:
        told += [("reached", each) for each in _reached(done)]
    if judged:
        told += [("verdict", each) for each in sorted(broken_in(done))]
    behind = [
        Event(eid, done.simulated, kind, code=code)
        for eid, (kind, code) in enumerate(told, len(rows))
    ]
    last = Event(
        len(rows) + len(behind),
        done.simulated,
        "run",
        code=done.verdict,
        aux=done.steps,
        off=len(rows),
        log_index=done.choices,
        chain=done.digest,
    )
    return [*rows, *behind, last]


def _reached(done: Trial) -> Iterator[str]:
    facts = Facts(done.rows)
    for each in PREDICATES:
        if each.holds(facts):
            yield each.id
    for state in states_of(done.rows, done.partitions):
        yield name_of(state)
