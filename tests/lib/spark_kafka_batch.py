"""Batches by Spark's own Kafka source and sink. Arguments: bootstrap, folder, records, jars."""

from __future__ import annotations

import json
import sys
from typing import Any


def session_with(jars: str) -> Any:
    """A session on this machine that has the connector."""
    from pyspark.sql import SparkSession

    return (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.jars", jars)
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )


def say(**what: Any) -> None:
    """Tell whoever reads the output."""
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def main(bootstrap: str, _: str, count: str, jars: str) -> None:
    """Write and read in every way that a batch can."""
    session, records = session_with(jars), int(count)
    here = {"kafka.bootstrap.servers": bootstrap}

    def read(**options: str) -> Any:
        asked = {**here, "subscribe": "t", **options}
        return session.read.format("kafka").options(**asked).load()

    text = "cast(id AS STRING)"
    session.range(records).selectExpr(
        f"cast({text} AS BINARY) key",
        f"cast({text} AS BINARY) value",
        "array(struct('h' AS key, cast('1' AS BINARY) AS value)) headers",
    ).write.format("kafka").options(**here, topic="t").save()
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
    asked = {**here, "subscribePattern": "t.*"}
    say(**{"by a pattern": session.read.format("kafka").options(**asked).load().count()})


if __name__ == "__main__":
    main(*sys.argv[1:])
