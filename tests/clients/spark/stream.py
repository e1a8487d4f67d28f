"""A stream by Spark's own Kafka source and sink: topic t is copied to topic copy, and the query is
stopped in the middle and goes on from its checkpoint. Arguments: bootstrap, folder, records, jars.
"""

import json
import sys
import time

from pyspark.sql import SparkSession

bootstrap, folder, count, jars = sys.argv[1:]
records = int(count)
session = (
    SparkSession.builder.master("local[2]")
    .config("spark.ui.enabled", "false")
    .config("spark.jars", jars)
    .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    .config("spark.sql.shuffle.partitions", "2")
    .getOrCreate()
)
HERE = {"kafka.bootstrap.servers": bootstrap}


def say(**what):
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def write(first, last):
    text = "cast(cast(id AS STRING) AS BINARY)"
    frame = session.range(first, last).selectExpr(f"{text} key", f"{text} value")
    frame.write.format("kafka").options(**HERE, topic="t").save()


def copy():
    asked = {"subscribe": "t", "startingOffsets": "earliest", "maxOffsetsPerTrigger": "100"}
    source = session.readStream.format("kafka").options(**HERE, **asked).load()
    sink = source.select("key", "value").writeStream.format("kafka").options(**HERE, topic="copy")
    return sink.option("checkpointLocation", f"{folder}/checkpoint").start()


def wait_for_batches(query, more):
    begun = query.lastProgress["batchId"] if query.lastProgress else 0
    while not query.lastProgress or query.lastProgress["batchId"] < begun + more:
        if query.exception() is not None:
            raise query.exception()
        time.sleep(0.02)


write(0, records)
say(written=records)
for moment in ("first", "second"):
    query = copy()
    wait_for_batches(query, 1)
    say(copying=moment)
    wait_for_batches(query, 4)
    say(**{"goes on": moment})
    query.stop()
write(records, 2 * records)
query = copy()
query.processAllAvailable()
query.stop()
copied = session.read.format("kafka").options(**HERE, subscribe="copy").load()
say(copied=copied.select("value").distinct().count())
