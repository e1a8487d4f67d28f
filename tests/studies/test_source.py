"""`format("ottla")` in Spark itself: batch and stream, cluster and folder.

What the reader's parts do by themselves is in test_topics_*.py; here Spark calls them, in processes
of its own, and keeps its own account of offsets.
"""

import json
import time

import pytest

from ottla import Cluster, Topic
from ottla.sim.studies.topics.identity import parted
from studies_topics import batch, plain, write

BATCHES = [batch(0, 1, 0, 10), plain(0, 3), batch(0, 1, 10, 10), batch(1, 2, 0, 5)]
WITHIN = 60


@pytest.fixture(scope="module")
def session(spark):
    from ottla.sim.studies.topics.source import register

    register(spark.session)
    return spark.session


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    data = tmp_path_factory.mktemp("data")
    with Cluster(nodes=3, data_dir=data, topics=[Topic("t", partitions=2)]) as running:
        write(running, "t", BATCHES)
        yield running, {"bootstrap": running.bootstrap_servers}, {"path": str(data)}


def read(session, **options):
    return session.read.format("ottla").options(topic="t", **options).load()


@pytest.mark.slow
def test_a_topic_is_a_table(session, cluster):
    _, *places = cluster
    for where in places:
        table = read(session, maxRecordsPerPartition=7, **where)
        table.createOrReplaceTempView("topic")
        found = session.sql(
            "SELECT partition, producer_id, count(*) n, min(sequence) low, max(sequence) high, "
            "min(offset) start, max(cast(value AS STRING)) top, max(timestamp) IS NULL untimed "
            "FROM topic GROUP BY ALL ORDER BY ALL"
        ).collect()
        assert [tuple(row) for row in found] == [
            (0, None, 3, None, None, 10, "plain", False),
            (0, 1, 20, 0, 19, 0, "9", False),
            (1, 2, 5, 0, 4, 0, "4", False),
        ]


@pytest.mark.slow
def test_batches_are_a_table_too_and_headers_are_there_when_asked_for(session, cluster):
    _, where, _ = cluster
    rows = read(session, rows="batches", **where).orderBy("partition", "base_offset").collect()
    assert [(row.base_offset, row.last_offset, row.base_sequence) for row in rows] == [
        (0, 9, 0),
        (10, 12, None),
        (13, 22, 10),
        (0, 4, 0),
    ]
    assert read(session, includeHeaders=True, **where).select("headers").first()[0] == []
    assert read(session, startingOffsets="latest", **where).count() == 0


@pytest.mark.slow
def test_a_mistake_is_named_in_one_line_of_what_spark_says(session):
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException, match="SourceError: there is no option startingoffset;"):
        read(session, bootstrap="127.0.0.1:1", startingOffset="latest").count()
    with pytest.raises(PySparkException, match="SourceError: maxRecordsPerBatch is for streams"):
        read(session, bootstrap="127.0.0.1:1", maxRecordsPerBatch=5).count()
    options = {"topic": "t", "bootstrap": "127.0.0.1:1", "endingOffsets": "latest"}
    endless = session.readStream.format("ottla").options(**options).load()
    with pytest.raises(PySparkException, match="SourceError: endingOffsets is for batches"):
        endless.writeStream.format("noop").start().awaitTermination(WITHIN)


def stream(session, checkpoint, rows, **options):
    """Run a stream until it has read so many rows; each micro-batch's number, rows and values."""
    seen: dict[int, list[bytes]] = {}

    def take(frame, number):
        seen[number] = [row.value for row in frame.select("value").collect()]

    query = (
        session.readStream.format("ottla")
        .options(topic="t", **options)
        .load()
        .writeStream.foreachBatch(take)
        .option("checkpointLocation", str(checkpoint))
        .trigger(processingTime="100 milliseconds")
        .start()
    )
    until = time.monotonic() + WITHIN
    while sum(map(len, seen.values())) < rows and time.monotonic() < until:
        assert query.exception() is None
        time.sleep(0.05)
    while query.status["isTriggerActive"]:
        time.sleep(0.05)
    query.stop()
    return seen


def reached(checkpoint):
    """Where a stream is, by its checkpoint, and which topics it knows by their ids."""
    offsets = sorted((checkpoint / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))
    at, ids = parted(json.loads(offsets[-1].read_text().splitlines()[-1]))
    return at, list(ids)


def is_bounded_and_goes_on(session, checkpoint, running, **where):
    write(running, "t", [batch(0, 1, 0, 10), batch(1, 1, 0, 4)])
    first = stream(session, checkpoint, 14, maxRecordsPerBatch=8, **where)
    assert [len(values) for _, values in sorted(first.items())][:2] == [8, 6]
    assert reached(checkpoint) == ({"t": {"0": 10, "1": 4}}, ["t"])
    write(running, "t", [batch(0, 1, 10, 3)])
    second = stream(session, checkpoint, 3, maxRecordsPerBatch=8, **where)
    whole = [value for values in (*first.values(), *second.values()) for value in values]
    assert len(whole) == 17
    assert sorted(whole, key=int) == sorted([b"%d" % n for n in (*range(13), *range(4))], key=int)
    assert min(second) > max(number for number, values in first.items() if values)
    assert reached(checkpoint) == ({"t": {"0": 13, "1": 4}}, ["t"])


@pytest.mark.slow
def test_a_stream_is_bounded_and_goes_on_from_its_checkpoint(session, tmp_path):
    with Cluster(nodes=1, topics=[Topic("t", partitions=2)]) as running:
        where = {"bootstrap": running.bootstrap_servers}
        is_bounded_and_goes_on(session, tmp_path, running, **where)


@pytest.mark.slow
def test_a_stream_over_a_folder_is_bounded_and_goes_on_from_its_checkpoint(session, tmp_path):
    data = tmp_path / "data"
    where = {"path": str(data), "startingOffsets": '{"t": {"0": -2, "1": 0}}'}
    with Cluster(nodes=1, data_dir=data, topics=[Topic("t", partitions=2)]) as running:
        is_bounded_and_goes_on(session, tmp_path / "checkpoint", running, **where)
