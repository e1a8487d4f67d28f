"""`trigger(availableNow=True)` on our source, which Python sources have from Spark 4.2 on.

Development is locked to an older Spark, so a newer one is installed beside it, for this test alone,
into a folder in front of the path. Where it cannot be installed, the test skips with the reason.
"""

import json
import os
import subprocess
import sys

import pytest

from ottla import Cluster, Topic
from studies_spark import need_spark
from studies_topics import batch, write

pytestmark = pytest.mark.slow
NEWER = "pyspark>=4.2,<5"
INSTALL_SECONDS, RUN_SECONDS = 900, 300
PROGRAM = """
import json, sys
from pyspark.sql import SparkSession
from ottla.sim.studies.topics.source import register
bootstrap, checkpoint = sys.argv[1:]
session = (
    SparkSession.builder.master("local[2]")
    .config("spark.ui.enabled", "false")
    .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1")
    .config("spark.sql.shuffle.partitions", "2")
    .getOrCreate()
)
register(session)
for line in sys.stdin:
    seen = []
    query = (
        session.readStream.format("ottla")
        .options(topic="t", bootstrap=bootstrap, maxRecordsPerBatch=100)
        .load()
        .writeStream.foreachBatch(lambda frame, number: seen.append(frame.count()))
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    sys.stdout.write(json.dumps([session.version, seen]) + "\\n")
    sys.stdout.flush()
"""


@pytest.fixture(scope="module")
def newer(tmp_path_factory):
    """A folder with a Spark that has it."""
    need_spark()
    folder = tmp_path_factory.mktemp("spark")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-input", "--target", folder]
    done = subprocess.run(
        [*pip, NEWER], capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False
    )
    if done.returncode:
        pytest.skip(f"cannot install {NEWER}: {done.stderr[-300:]}")
    return folder


def test_a_stream_ends_where_the_topic_ends_in_bounded_steps(newer, tmp_path):
    errors = tmp_path / "errors.txt"
    with Cluster(nodes=1, topics=[Topic("t", partitions=2)]) as cluster:
        write(cluster, "t", [batch(n % 2, 1, n // 2 * 30, 30) for n in range(12)])
        with errors.open("w", encoding="utf-8") as log:
            program = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, cluster.bootstrap_servers, tmp_path / "checkpoint"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={
                    **os.environ,
                    "PYTHONPATH": str(newer),
                    "PYSPARK_PYTHON": sys.executable,
                    "SPARK_LOCAL_IP": "127.0.0.1",
                    "SPARK_HOME": str(newer / "pyspark"),
                },
            )

        def run():
            assert program.stdin is not None
            assert program.stdout is not None
            program.stdin.write("go\n")
            program.stdin.flush()
            line = program.stdout.readline()
            assert line, errors.read_text(encoding="utf-8")[-3000:]
            return json.loads(line)

        version, seen = run()
        assert tuple(map(int, version.split(".")[:2])) >= (4, 2)
        assert seen == [100, 100, 100, 60]
        assert run()[1] == []
        write(cluster, "t", [batch(0, 1, 180, 40)])
        assert run()[1] == [40]
        program.communicate(timeout=RUN_SECONDS)
