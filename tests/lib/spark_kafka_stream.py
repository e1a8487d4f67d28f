"""A stream by Spark's own Kafka source and sink: topic t is copied to topic copy, and the query is
stopped in the middle and goes on from its checkpoint. Arguments: bootstrap, folder, records, jars.
"""

from __future__ import annotations

import sys
import time
from typing import Any

from spark_kafka_batch import say, session_with

MOMENTS = ("first", "second")


def write(session: Any, here: dict[str, str], ids: range) -> None:
    """These records into topic t, by the sink."""
    text = "cast(cast(id AS STRING) AS BINARY)"
    frame = session.range(ids.start, ids.stop).selectExpr(f"{text} key", f"{text} value")
    frame.write.format("kafka").options(**here, topic="t").save()


def copy(session: Any, here: dict[str, str], folder: str) -> Any:
    """The query, begun or gone on with."""
    asked = {"subscribe": "t", "startingOffsets": "earliest", "maxOffsetsPerTrigger": "100"}
    source = session.readStream.format("kafka").options(**here, **asked).load()
    sink = source.select("key", "value").writeStream.format("kafka").options(**here, topic="copy")
    return sink.option("checkpointLocation", f"{folder}/checkpoint").start()


def wait_for_batches(query: Any, more: int) -> None:
    """Until it has done so many more micro-batches. Raises what ended it."""
    begun = query.lastProgress["batchId"] if query.lastProgress else 0
    while not query.lastProgress or query.lastProgress["batchId"] < begun + more:
        if query.exception() is not None:
            raise query.exception()
        time.sleep(0.02)


def main(bootstrap: str, folder: str, count: str, jars: str) -> None:
    """Copy a topic, stop twice in the middle, and count what arrived."""
    session, records = session_with(jars), int(count)
    here = {"kafka.bootstrap.servers": bootstrap}
    write(session, here, range(records))
    say(written=records)
    for moment in MOMENTS:
        query = copy(session, here, folder)
        wait_for_batches(query, 1)
        say(copying=moment)
        wait_for_batches(query, 4)
        say(**{"goes on": moment})
        query.stop()
    write(session, here, range(records, 2 * records))
    query = copy(session, here, folder)
    query.processAllAvailable()
    query.stop()
    copied = session.read.format("kafka").options(**here, subscribe="copy").load()
    say(copied=copied.select("value").distinct().count())


if __name__ == "__main__":
    main(*sys.argv[1:])
