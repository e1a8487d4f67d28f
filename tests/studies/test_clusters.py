"""Studies where they outgrow one process: a cluster of executors, and Spark Connect.

The command runs as a user starts it, and its folder is read afterwards with DuckDB: what a study on
one machine comes to is what it must hold. Executors have an interpreter of their own with the four
libraries that the documentation asks for; Ottla comes to them as a zip.
"""

import os
import signal
import socket
import subprocess
import sys
import time
import venv
from contextlib import ExitStack, suppress
from importlib.resources import as_file, files
from importlib.util import find_spec
from pathlib import Path

import pytest

from awaiting import await_that
from cli_groups import end
from ottla.sim.studies.lake import BATCH_ROWS
from ottla.sim.studies.names import GOLD, GOLD_PREFIX
from ottla.sim.studies.pipeline import STAGES, Progress
from studies_spark import JVM, need_spark
from studies_tiny import TINY, contents, study

pytestmark = pytest.mark.nightly

LIBRARIES = ("crc32c", "msgpack", "pyarrow", "sortedcontainers")
EXECUTOR = "CoarseGrainedExecutorBackend"
WITHIN = 900
MARK_BYTES = 8
"""Of a run that is over, in the file of whoever runs it."""
SILVER = ("runs", "requests", "acked", "failovers", "producers", "variants")
LOSES = TINY.replace("load_ms = 1000\nrecords = 12", "load_ms = 8000\nrecords = 60").replace(
    "acks = [1, -1]", 'acks = [1, -1]\nfailure = ["the leader is killed"]'
)
"""With acks=1 records are lost, so that judges, outages and losses have rows to be compared."""


@pytest.fixture(scope="module")
def clean_python(tmp_path_factory):
    """An interpreter that has what executors need, and nothing else."""
    home = tmp_path_factory.mktemp("clean")
    venv.create(home, with_pip=True)
    python = home / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", *LIBRARIES], check=True)
    assert subprocess.run([python, "-c", "import ottla"], check=False).returncode == 1
    return python


def begin(out: Path, seeds: int, *, master: str | None = None, **environment: object):
    """The command, under way; it is told its folder as people do, from where they are."""
    need_spark()
    file = out.with_suffix(".toml")
    file.write_text(LOSES)
    command = [sys.executable, "-m", "ottla", "study", "run", str(file), "--engine", "spark"]
    command += ["--seeds", str(seeds), "--out", out.name]
    command += [] if master is None else ["--master", master]
    told = {name: str(value) for name, value in environment.items()}
    return subprocess.Popen(
        command,
        cwd=out.parent,
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", **told},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def agrees_with_one_machine(process, out: Path, seeds: int, duck) -> None:
    said, _ = process.communicate(timeout=WITHIN)
    assert process.returncode == 0, said
    steps: list[Progress] = []
    there = study(
        out, LOSES, seeds=seeds, wave=None, engine=duck, told=steps.append, batch_rows=BATCH_ROWS
    )
    # DuckDB goes on with the folder: what Spark left out would be made here, and agree.
    assert {step.stage for step in steps} == set(STAGES)
    assert [step for step in steps if step.fresh] == []
    tables = (*SILVER, *(f"{GOLD_PREFIX}{each}" for each in GOLD))
    found = {table: contents(there, table) for table in tables}
    plain = study(out.with_name("plain"), LOSES, seeds=seeds, wave=None, engine=duck)
    assert found == {table: contents(plain, table) for table in found}
    assert sum(row["runs"] for row in found["gold_kills"]) == 2 * seeds
    assert all(found[table] for table in SILVER)


def descendants(root: int) -> dict[int, str]:
    """Processes below one, with what they were started as."""
    parents, commands = {}, {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            stat = (entry / "stat").read_text().rpartition(")")[2].split()
            commands[int(entry.name)] = (entry / "cmdline").read_text()
        except OSError:
            continue
        parents[int(entry.name)] = int(stat[1])
    below = {root}
    while more := {pid for pid, parent in parents.items() if parent in below} - below:
        below |= more
    return {pid: commands[pid] for pid in below - {root}}


def runs_over(out: Path) -> int:
    marks = out.glob("bronze/_running-*/*")
    return sum(mark.stat().st_size for mark in marks) // MARK_BYTES


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are found in /proc")
def test_executors_without_ottla_one_of_which_dies(tmp_path, clean_python, duck):
    out, seeds = tmp_path / "out", 12
    process = begin(out, seeds, master="local-cluster[2,1,1024]", PYSPARK_PYTHON=clean_python)
    deadline = time.monotonic() + WITHIN
    while runs_over(out) < 3:
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < deadline
        time.sleep(0.05)
    found = descendants(process.pid)
    workers = [pid for pid, command in found.items() if str(clean_python) in command]
    executors = [pid for pid, command in found.items() if EXECUTOR in command]
    assert workers
    assert len(executors) == 2
    os.kill(executors[0], signal.SIGKILL)
    over = runs_over(out)
    agrees_with_one_machine(process, out, seeds, duck)
    assert over < 2 * seeds


def test_spark_connect(tmp_path, duck):
    pytest.importorskip("grpc_status", reason="Spark Connect: pip install 'pyspark[connect]'")
    process = begin(tmp_path / "out", 4, SPARK_REMOTE="local[2]")
    agrees_with_one_machine(process, tmp_path / "out", 4, duck)


SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"


def answers(address: tuple[str, int]) -> bool:
    with suppress(OSError), socket.create_connection(address, 1):
        return True
    return False


@pytest.fixture
def server(tmp_path):
    """Where a server of Spark Connect is that nobody shares: a process of its own, of the pip
    package, gone afterwards."""
    need_spark()
    pytest.importorskip("grpc_status", reason="Spark Connect: pip install 'pyspark[connect]'")
    with socket.create_server(("127.0.0.1", 0)) as free:
        host, port = free.getsockname()
    found = find_spec("pyspark")
    assert found is not None
    assert found.origin is not None
    submit = Path(found.origin).with_name("bin") / "spark-submit"
    settings = {
        "spark.connect.grpc.binding.address": host,
        "spark.connect.grpc.binding.port": port,
        "spark.ui.enabled": "false",
    }
    command = [str(submit), "--master", "local[2]", "--class", SERVER]
    for name, value in settings.items():
        command += ["--conf", f"{name}={value}"]
    home = tmp_path / "server"
    home.mkdir()
    with as_file(files("ottla.sim.studies") / "quiet.properties") as quiet, ExitStack() as stack:
        options = f"{JVM} -Dlog4j2.configurationFile=file:{quiet}"
        log = stack.enter_context((home / "log").open("w"))
        process = subprocess.Popen(
            [*command, "--driver-java-options", options],
            cwd=home,
            env={**os.environ, "SPARK_LOCAL_IP": host, "PYSPARK_PYTHON": sys.executable},
            stdout=log,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            await_that(
                lambda: answers((host, port)) or process.poll() is not None, 120, "no server"
            )
            assert process.poll() is None, (home / "log").read_text()
            yield f"sc://{host}:{port}"
        finally:
            end(process)


def test_a_server_of_spark_connect_that_is_a_process_of_its_own(tmp_path, server, duck):
    process = begin(tmp_path / "out", 2, master=server)
    agrees_with_one_machine(process, tmp_path / "out", 2, duck)
