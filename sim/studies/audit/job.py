"""`ottla study audit`: the audit of a topic as a streaming query over its record batches.

**Theory.** Executors read the headers of batches (`rows=batches`: nothing is decompressed). The
driver sorts each micro-batch into the order of the log, passes it to the ledger, and stores the
ledger before Spark commits the micro-batch. There are few rows, one per batch that a producer sent,
limited by `maxRecordsPerBatch`. So the part that must see everything in order can be one plain
loop.

**Ending.** Spark 4.0 cannot end a Python source's stream at the end of the topic (`availableNow`
came with 4.2). So `once` looks up the end of the topic first and stops the query when it is
reached. If a query is stopped in the middle of a micro-batch, that is not counted, and will be read
again.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from ottla.sim.studies.audit.leaderless import Leaderless, not_read
from ottla.sim.studies.audit.ledger import (
    STREAM,
    Audit,
    committed,
    keep,
    opened,
    planned,
    reached,
    taken,
    told,
)
from ottla.sim.studies.audit.sequences import Seen
from ottla.sim.studies.topics.asked import PASSED_OVER, Asked, SourceError, asked
from ottla.sim.studies.topics.identity import Kept, without_leader
from ottla.sim.studies.topics.offsets import Bounds
from ottla.sim.studies.topics.reading import Present, present, present_behind

PAUSE = "200 milliseconds"
"""Time between the beginnings of micro-batches, if there is little to read."""
_LOOK_S = 0.05
"""Seconds between two checks of the query. Spark's own wait reports no progress, does not end for a
signal, and raises the exception that ended the query."""
_COLUMNS = (
    "partition",
    "base_offset",
    "last_offset",
    "records",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "leader_epoch",
)
_OWN_ERROR = re.compile(r"(?:SourceError|DataLossError): (.+)")
_BEGIN_ANEW = "audit with a new --checkpoint"


class StoppedError(Exception):
    """The query is being stopped: this micro-batch is not counted."""


@dataclass
class Job:
    """One audit, from its checkpoint on, which it holds alone from `begin` to `close`. Raises
    `SourceError` for every error that a user can mend."""

    bootstrap: str
    topic: str
    checkpoint: Path
    tell: Callable[[str], None]
    """Called with each finding in one line, once it is durable."""
    timeout: int = 30
    """How many seconds no broker may answer."""
    per_batch: int = 200_000
    """Most records of a micro-batch."""
    audit: Audit = field(init=False)
    said: str = field(init=False, default="")
    """The result of the audit up to the last micro-batch."""
    unread: list[str] = field(init=False, default_factory=list)
    """What of the topic could not be read by the end, in lines."""
    _lock: IO[str] | None = field(init=False, default=None)
    _ends: Mapping[int, Bounds] = field(init=False)
    _planned: int = field(init=False, default=-1)
    """The last micro-batch that was planned before this query: its information about leaders is
    old."""
    _stopping: bool = field(init=False, default=False)
    _failure: Exception | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.topic = self.topic.strip()  # as the data source does with its options

    def begin(self) -> None:
        """Look the topic up and open the checkpoint, which must be of this very topic; its earlier
        findings are reported again."""
        if not self.topic:
            raise SourceError("--topic is empty; name the topic")
        if "," in self.topic:
            raise SourceError(f"--topic {self.topic}: audit one topic at a time")
        options = {"bootstrap": self.bootstrap, "topic": self.topic, "timeout": str(self.timeout)}
        wanted = asked(options)
        now = present(wanted)
        if self._lock is None:
            self._lock = taken(self.checkpoint)
        try:
            self._open(wanted, now)
        except BaseException:
            self.close()  # otherwise it is held as long as the error is referenced
            raise

    def close(self) -> None:
        """Release the checkpoint."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _open(self, wanted: Asked, now: Present) -> None:
        audit = opened(self.checkpoint, self.topic)
        if audit.batch >= 0:
            now = present_behind(wanted, audit.kept)
            audit.goes_on(now.bounds[self.topic], reached(self.checkpoint, audit))
        self._ends = now.bounds[self.topic]
        audit.topic_id = now.ids.get(self.topic, audit.topic_id)
        self.audit = audit
        self.said = self.audit.told()
        for partition, each in self.audit.findings:
            self.tell(told(self.topic, partition, each))
        for partition, bounds in self._ends.items():
            if bounds.start and partition not in audit.partitions:
                self.tell(deleted(self.topic, partition, bounds))

    def run(
        self,
        session: Any,
        *,
        once: bool = False,
        seconds: float | None = None,
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        """Audit until `stopped`, for `seconds` after the query has started, or with `once` up to
        the present end of the topic."""
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        query = self._started(session)
        try:
            leaderless = Leaderless(self.topic, self.timeout)
            self._follow(query, leaderless, once, seconds, stopped)
            failed = query.exception()
            self._stopping = True
            query.stop()
            kept = self._heard(query, leaderless)  # it may have gone on since the last check
        except (Py4JError, PySparkException, OSError) as error:
            raise SourceError(
                f"Spark has ended ({type(error).__name__}); audit again with the same --checkpoint"
            ) from None
        if self._failure is not None:
            raise self._failure
        if failed is not None:
            raise SourceError(reason(str(failed)))
        lost = leaderless.since.keys() & self._left(kept) if once else leaderless.since.keys()
        self.unread = [
            not_read(self.topic, each, self.audit.partitions.get(each)) for each in sorted(lost)
        ]

    def _started(self, session: Any) -> Any:
        """The started query. Raises `SourceError` if Spark cannot start it, for example because it
        cannot read its part of the checkpoint."""
        from ottla.sim.studies.spark_errors import in_one_line, spark_errors
        from ottla.sim.studies.topics.source import register

        try:
            register(session)
            return self._stream(session)
        except spark_errors() as error:
            raise SourceError(
                f"--checkpoint {self.checkpoint}: Spark does not begin: {in_one_line(error)}"
            ) from None

    def _follow(
        self,
        query: Any,
        leaderless: Leaderless,
        once: bool,
        seconds: float | None,
        stopped: Callable[[], bool],
    ) -> None:
        """Wait for the end of the audit, and report partitions that have no leader."""
        end = None
        while query.isActive and not stopped():
            kept = self._heard(query, leaderless)
            if once and all(map(leaderless.given_up, self._left(kept))) and self._settled():
                break
            if end is None and seconds is not None and query.lastProgress is not None:
                end = time.monotonic() + seconds
            if end is not None and time.monotonic() > end:
                break
            time.sleep(_LOOK_S)

    def _settled(self) -> bool:
        """Whether nothing that is counted will be read again. If an audit restarted from the first
        micro-batch, it would need a leader of every partition."""
        return self.audit.batch <= committed(self.checkpoint)

    def _heard(self, query: Any, leaderless: Leaderless) -> Kept:
        """The end of the last micro-batch that Spark committed. Reports news about leaders, but not
        from a micro-batch that is read again: its offsets were recorded before this audit began,
        and an audit begins only if every partition has a leader."""
        number, kept = _progress(query)
        if number > self._planned:
            for line in leaderless.heard(without_leader(kept, self.topic)):
                self.tell(line)
        return kept

    def _stream(self, session: Any) -> Any:
        from ottla.sim.studies.spark_frames import located

        self._planned = planned(self.checkpoint)
        frame = (
            session.readStream.format("ottla")
            .option("bootstrap", self.bootstrap)
            .option("topic", self.topic)
            .option("rows", "batches")
            .option("failOnDataLoss", "true")  # lost records cannot be judged
            .option("maxRecordsPerBatch", str(self.per_batch))
            .option("timeout", str(self.timeout))
            .load()
        )
        return (
            frame.select(*_COLUMNS)
            .writeStream.foreachBatch(self._count)
            .option("checkpointLocation", located((self.checkpoint / STREAM).absolute()))
            .trigger(processingTime=PAUSE)
            .start()
        )

    def _count(self, frame: Any, number: int) -> None:
        """Count one micro-batch, unless it is counted already. Runs on a thread of the query."""
        if number <= self.audit.batch:
            return
        try:
            rows = frame.toArrow()
        except Exception:
            if self._stopping:
                raise StoppedError from None  # Spark searches the text, and not every stack is deep
            raise
        if self._stopping:
            raise StoppedError
        self.audit.batch = number  # before anything of it is counted: see `_settled`
        try:
            lines = [
                told(self.topic, partition, each)
                for partition, batch in in_order(rows)
                for each in self.audit.observe(partition, batch)
            ]
        except SourceError as error:
            self._failure = error
            raise
        try:
            keep(self.checkpoint, self.audit)
        except OSError as error:
            self._failure = SourceError(f"--checkpoint {self.checkpoint}: {error.strerror}")
            raise self._failure from None
        self.said = self.audit.told()
        for line in lines:
            self.tell(line)

    def _left(self, kept: Kept) -> set[int]:
        """The partitions whose records from before the beginning are not all counted yet."""
        seen = kept.get(self.topic, {})
        ledgers = self.audit.partitions
        return {
            each
            for each, bounds in self._ends.items()
            if bounds.start < bounds.end
            and not (each in ledgers and ledgers[each].next >= bounds.end)
            and seen.get(str(each), 0) < bounds.end
        }


def in_order(rows: Any) -> Iterator[tuple[int, Seen]]:
    """The batches of one micro-batch, an Arrow table, in the order of the log: each with its
    partition."""
    ordered = rows.sort_by([("partition", "ascending"), ("base_offset", "ascending")])
    columns = [ordered.column(name).to_pylist() for name in _COLUMNS]
    for partition, base, last, records, producer, epoch, first, leader in zip(
        *columns, strict=True
    ):
        size = last - base + 1
        if producer is None:
            yield partition, Seen(base, last, -1, -1, -1, size, leader, records)
        elif first is None:  # the marker of a transaction: an offset without a record
            yield partition, Seen(base, last, -1, -1, -1, 0, leader)
        else:
            yield partition, Seen(base, last, producer, epoch, first, size, leader, records)


def reason(text: str) -> str:
    """The important line of Spark's text about a query that failed."""
    own = _OWN_ERROR.findall(text)
    if not own:
        return text.strip().splitlines()[0]
    return str(own[-1]).replace(PASSED_OVER, _BEGIN_ANEW)


def deleted(topic: str, partition: int, bounds: Bounds) -> str:
    """What cannot be judged of a partition whose log begins later, in one line."""
    empty = "is empty: its log" if bounds.start == bounds.end else "has lost its front: its log"
    return (
        f"{topic}-{partition} {empty} starts at offset {bounds.start}, and what was before that is "
        f"deleted and cannot be judged"
    )


def _progress(query: Any) -> tuple[int, Kept]:
    """The number of the last micro-batch that Spark committed, and where it ends."""
    last = query.lastProgress
    if last is None:
        return -1, {}
    progress = json.loads(last.json)
    end = progress["sources"][0]["endOffset"]
    offsets = json.loads(end) if isinstance(end, str) else end
    return progress["batchId"], dict(offsets or {})
