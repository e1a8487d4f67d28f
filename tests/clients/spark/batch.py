"""Batches by Spark's own Kafka source and sink. Arguments: bootstrap, folder, records, jars."""

import json
import sys

from pyspark.sql import SparkSession

bootstrap, _, count, jars = sys.argv[1:]
records = int(count)
session = (
    SparkSession.builder.master("local[2]")
    .config("spark.ui.enabled", "false")
    .config("spark.jars", jars)
    .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    .config("spark.sql.shuffle.partitions", "2")
    .getOrCreate()
)


def say(**what):
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def read(**options):
    asked = {"kafka.bootstrap.servers": bootstrap, "subscribe": "t", **options}
    return session.read.format("kafka").options(**asked).load()


text = "cast(id AS STRING)"
(
    session.range(records)
    .selectExpr(
        f"cast({text} AS BINARY) key",
        f"cast({text} AS BINARY) value",
        "array(struct('h' AS key, cast('1' AS BINARY) AS value)) headers",
    )
    .write.format("kafka")
    .options(**{"kafka.bootstrap.servers": bootstrap, "topic": "t"})
    .save()
)
say(written=records)
table = read()
say(
    read=table.count(),
    values=table.selectExpr("cast(value AS STRING)").distinct().count(),
    partitions=table.select("partition").distinct().count(),
)
header = read(includeHeaders="true").select("headers").first()[0]
say(headers=[{"key": each.key, "value": each.value.decode()} for each in header])
places = {
    "startingOffsets": json.dumps({"t": {"0": 3, "1": 4, "2": 5}}),
    "endingOffsets": json.dumps({"t": {"0": 10, "1": 11, "2": 12}}),
}
say(**{"from offsets": read(**places).count()})
say(**{"from a time": read(startingTimestamp="1").count()})
say(**{"in more pieces than partitions": read(minPartitions="8").count()})
asked = {"kafka.bootstrap.servers": bootstrap, "subscribePattern": "t.*"}
say(**{"by a pattern": session.read.format("kafka").options(**asked).load().count()})
