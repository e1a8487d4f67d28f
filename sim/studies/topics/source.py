"""`format("ottla")` for Spark: a Python data source, for batches and streams.

Of these modules only this one needs pyspark. Spark pickles its classes by name and calls them in
its own Python processes, on the driver for plans and on executors for rows, so `ottla` must be
importable there. Rows are sent as Arrow record batches.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)

from ottla.sim.studies.topics.asked import Asked, asked
from ottla.sim.studies.topics.offsets import Range
from ottla.sim.studies.topics.reading import Stream, batch_ranges, rows

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType


def _available_now() -> Any:
    """The base class that tells Spark from 4.2 on that a stream can end at the present end of the
    topic."""
    try:
        from pyspark.sql.streaming import datasource
    except ImportError:
        return object
    return datasource.SupportsTriggerAvailableNow


def register(spark: SparkSession) -> None:
    """Make `spark.read.format("ottla")` and `spark.readStream.format("ottla")` known."""
    spark.dataSource.register(OttlaSource)


class Piece(InputPartition):  # type: ignore[misc]  # pyspark's classes are untyped
    """A range for one task."""

    def __init__(self, wanted: Range) -> None:
        self.wanted = wanted


class OttlaSource(DataSource):  # type: ignore[misc]  # as above
    """Topics of a cluster, or of a data folder, as a table; options as in `asked`."""

    @classmethod
    def name(cls) -> str:
        """The name for `format`."""
        return "ottla"

    def schema(self) -> str:
        """Columns as DDL, by the options `rows` and `includeHeaders`. Raises `SourceError`."""
        from ottla.sim.studies.topics.columns import ddl

        wanted = asked(self.options)
        return ddl(wanted.rows, headers=wanted.headers)

    def reader(self, schema: StructType) -> DataSourceReader:
        """For `spark.read`. Raises `SourceError`."""
        return Reader(asked(self.options, stream=False))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's
        """For `spark.readStream`. Raises `SourceError`."""
        return StreamReader(asked(self.options, stream=True))


def _read(wanted: Asked, piece: InputPartition | None) -> Iterator[pa.RecordBatch]:
    """If there are no ranges, Spark reads one task without a range."""
    if isinstance(piece, Piece):
        yield from rows(wanted, piece.wanted)


class Reader(DataSourceReader):  # type: ignore[misc]  # as above
    """One batch query."""

    def __init__(self, wanted: Asked) -> None:
        self._asked = wanted

    def partitions(self) -> list[InputPartition]:
        """The ranges for tasks. Raises `SourceError`."""
        return [Piece(each) for each in batch_ranges(self._asked)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task. Raises `SourceError`."""
        return _read(self._asked, partition)


class StreamReader(DataSourceStreamReader, _available_now()):  # type: ignore[misc]  # as above
    """One streaming query."""

    def __init__(self, wanted: Asked) -> None:
        self._asked = wanted
        self._stream = Stream(wanted)

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's
        """Where a query without a checkpoint begins."""
        return self._stream.first()

    def latestOffset(  # noqa: N802 - Spark's
        self, start: dict[str, Any] | None = None, limit: Any = None
    ) -> dict[str, Any]:
        """Where the next micro-batch ends; Spark before 4.2 does not say where it begins."""
        return self._stream.next(start)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's
        """Let the query end where the topics end now."""
        self._stream.freeze()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """The ranges for the tasks of one micro-batch."""
        return [Piece(each) for each in self._stream.ranges(start, end)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task. Raises `SourceError`."""
        return _read(self._asked, partition)
