"""Spark for tests: one session of a test run, started as cheaply as a JVM can be."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ottla.sim.studies.engine import spark_lacks
from ottla.sim.studies.spark import SETTINGS, WAREHOUSE, Spark, spark_session

JVM = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
"""Half the CPU of a start; long jobs would be slower for it. With one compiler a JVM reserves 48 MB
for compiled code, a fifth of what it does otherwise: the session of all tests filled that, *Out of
space in CodeCache for adapters*, and ended. No collector is named here: `spark_session` names one
to every JVM that is started from then on, and with two none starts."""


def need_spark() -> None:
    """Skip the test, with the reason, where Spark cannot be had."""
    lacking = spark_lacks()
    if lacking is not None:
        pytest.skip(lacking)


def local_spark(folder: Path, cores: int = 2) -> Spark:
    """The engine on a session in this machine."""
    need_spark()
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    settings = {
        **SETTINGS,
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": JVM,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "2g",  # one session for the queries of all tests
        "spark.sql.shuffle.partitions": "2",
        WAREHOUSE: str(folder),
    }
    return Spark(spark_session(f"local[{cores}]", settings))
