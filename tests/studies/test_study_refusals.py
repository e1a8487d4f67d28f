"""What stops a study is one line and status 2, whether the user, the disk or the system did it.

The disk that is full is a limit on the size of files here, which is met by the same write; the
process that is killed is one of those that simulate, found by the system's list of processes.
"""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from awaiting import await_that
from cli_groups import await_nobody, begun, end
from cli_process import PROGRAM, ottla
from ottla.sim.studies.audit.job import Job
from ottla.sim.studies.engine import check_engine, open_engine
from ottla.sim.studies.lake import Lake
from ottla.sim.studies.masters import check
from ottla.sim.studies.plan import plan_of
from ottla.sim.studies.spark import spark_session
from ottla.sim.studies.study import StudyError, parse
from ottla.sim.studies.topics.asked import SourceError
from studies_spark import need_spark
from studies_tiny import TINY


@pytest.fixture
def tiny(tmp_path):
    path = tmp_path / "tiny.toml"
    path.write_text(TINY)
    return path


def refused(done):
    """The line; one of progress may have come before it."""
    assert done.returncode == 2, done.stderr
    assert all(
        line.startswith(("plan, ", "engine, ", "canary ", "sweep "))
        for line in done.stdout.splitlines()
    )
    (line,) = done.stderr.splitlines()
    return line.removeprefix("ottla: ")


@pytest.mark.slow
def test_a_seed_that_has_no_place_in_a_table_is_none(tiny, tmp_path):
    asked = ["study", "run", tiny, "--out", tmp_path / "out", "--seeds", "2", "--first"]
    for first in ("0xFFFFFFFFFFFFFFFF", str(2**63 - 1)):
        assert refused(ottla(*asked, first)) == (
            f"--first {first}: at most {2**63 - 2}, tables hold seeds below 2**63"
        )
    done = ottla(*asked, str(2**63 - 2), "--engine", "duckdb")
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", ["runs[1]", "runs*", "what?", "{a,b}", "a\\b", "in[1]/runs"])
def test_a_folder_that_engines_read_as_a_pattern_is_refused_at_once(tiny, tmp_path, name):
    out = tmp_path / name
    told = refused(ottla("study", "run", tiny, "--out", out, "--engine", "duckdb"))
    assert told.startswith(f"{out}: engines read ")
    assert [each.name for each in tmp_path.iterdir()] == ["tiny.toml"]


@pytest.mark.slow
def test_a_word_that_is_empty_is_one_line(tiny):
    """An empty --out was the folder that one is in."""
    assert refused(ottla("study", "run", tiny, "--out", "")) == "--out is empty; name a folder"
    with pytest.raises(SourceError, match=r"^--topic is empty; name the topic$"):
        Job("127.0.0.1:1", "", tiny, print).begin()


@pytest.mark.slow
def test_a_file_in_the_way_of_the_folder_is_one_line_and_stays(tiny):
    asked = ["study", "run", tiny, "--engine", "duckdb", "--out"]
    assert refused(ottla(*asked, tiny)) == f"--out {tiny} is a file; name a folder"
    assert refused(ottla(*asked, tiny / "out")) == (
        f"--out {tiny / 'out'}: {tiny} is a file; name a folder elsewhere"
    )
    assert tiny.read_text() == TINY


def test_a_folder_that_cannot_be_made_is_one_line(monkeypatch, tmp_path):
    """Whoever is root may write in any folder, so the system's answer is made up."""

    def closed(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", closed)
    with pytest.raises(StudyError) as raised:
        Lake(tmp_path / "out", plan_of(parse(TINY), 1, 0))
    assert str(raised.value) == (
        f"--out {tmp_path / 'out'}: Permission denied; name a folder that can be written"
    )


@pytest.mark.parametrize(
    ("master", "told"),
    [
        ("nonsense", "is not a master of Spark; write local[4], spark://HOST:7077"),
        ("local[x]", "is not a master of Spark"),
        ("spark://127.0.0.1", "is not a master of Spark"),
        ("spark://127.0.0.1:1", "Connection refused"),
        ("spark://127.0.0.1:1,127.0.0.1:2", "Connection refused"),
        ("spark://127.0.0.1:99999999999999999999", "is not a master of Spark"),
        ("spark://nobody.invalid:7077", ""),
        ("spark://[::1]:1", ""),
        ("sc://[::1]:1", ""),
        ("sc://127.0.0.1:1", "Connection refused"),
        ("sc://127.0.0.1:1/;token=abc", "Connection refused"),
        ("spark://a..b:7077", "a..b is not an address"),
        (f"sc://{'h' * 64}:1", "h is not an address"),
    ],
)
def test_a_master_that_is_none_or_away_is_one_line(master, told, monkeypatch):
    for name in ("grpc_proxy", "https_proxy", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(StudyError, match="--master ") as raised:
        check(master)
    assert str(raised.value).startswith(f"--master {master}: ")
    assert told in str(raised.value)
    assert bool(told) or "is no master" not in str(raised.value)


@pytest.mark.parametrize(
    "master",
    ["local", "local[*]", "local[4]", "local[2, 3]", "local-cluster[2,1,1024]", "yarn", "k8s://a"],
)
def test_a_master_that_nobody_has_to_reach_is_let_through(master):
    check(master)


def test_a_server_in_the_environment_that_is_away_is_one_line_too(monkeypatch):
    """PySpark asks for ten minutes."""
    for name in ("grpc_proxy", "https_proxy", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SPARK_REMOTE", "sc://127.0.0.1:1")
    with pytest.raises(StudyError) as raised:
        check(None)
    assert str(raised.value) == "SPARK_REMOTE=sc://127.0.0.1:1: Connection refused"


@pytest.mark.slow
def test_a_study_asks_for_its_master_first(tiny, tmp_path):
    need_spark()
    asked = ["study", "run", tiny, "--out", tmp_path / "out", "--master", "spark://127.0.0.1:1"]
    assert refused(ottla(*asked)) == "--master spark://127.0.0.1:1: Connection refused"


@pytest.mark.parametrize(
    ("master", "said"),
    [
        ("local[2]", {"SPARK_REMOTE": "sc://h:1"}),
        ("sc://h:1", {"MASTER": "local[2]"}),
        (None, {"SPARK_REMOTE": "sc://h:1", "MASTER": "local[2]"}),
    ],
)
def test_two_ways_to_spark_are_one_line(master, said, monkeypatch):
    """PySpark refuses them too, but in the middle of its work: a traceback, and status 1."""
    need_spark()
    for name, value in said.items():
        monkeypatch.setenv(name, value)
    ways = {"MASTER": "MASTER=local[2]", "SPARK_REMOTE": "SPARK_REMOTE=sc://h:1"}
    if master is not None:
        ways["SPARK_REMOTE" if "h:1" in master else "MASTER"] = f"--master {master}"
    named = " and ".join(sorted(ways.values()))
    told = f"{named}: Spark is to be found one way; leave one of them out"
    for ask in (
        lambda: spark_session(master, {}),
        lambda: check_engine("spark", master),
        lambda: open_engine("spark", master=master),
    ):
        with pytest.raises(StudyError) as raised:
            ask()
        assert str(raised.value) == told


def test_what_pyspark_refuses_while_it_is_asked_is_one_line(monkeypatch):
    """Such as two ways to Spark, had nobody looked before."""
    need_spark()
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    def refuse(*_: object) -> None:
        raise PySparkRuntimeError("neither\nnor")

    monkeypatch.setattr(SparkSession.Builder, "appName", refuse)
    with pytest.raises(StudyError, match=r"^engine spark: neither$"):
        spark_session(None, {})


@pytest.mark.slow
@pytest.mark.parametrize("server", ["sc://127.0.0.1:1", "local[2]"])
@pytest.mark.parametrize("master", [None, "local[2]"])
def test_an_audit_is_not_for_spark_connect(server, master, monkeypatch):
    need_spark()
    monkeypatch.setenv("SPARK_REMOTE", server)
    words = [] if master is None else ["--master", master]
    where = ["--bootstrap", "127.0.0.1:1", "--timeout", "1"]
    assert refused(ottla("study", "audit", *where, "--topic", "t", *words)) == (
        f"SPARK_REMOTE={server}: an audit needs Spark's driver in its own process; unset it, and "
        "give --master local[2], or that of a cluster"
    )


@pytest.mark.slow
def test_a_file_that_cannot_be_written_is_one_line_and_the_study_is_gone_on_with(tiny, tmp_path):
    asked = ["study", "run", str(tiny), "--out", str(tmp_path / "out"), "--engine", "duckdb"]
    small = "import resource as r; r.setrlimit(r.RLIMIT_FSIZE, (4096, r.RLIM_INFINITY))"
    done = subprocess.run(
        [sys.executable, "-c", f"{small}; {PROGRAM}", *asked],
        check=False,
        capture_output=True,
        text=True,
    )
    line = refused(done)
    assert line.startswith(f"{tmp_path / 'out'}")
    assert "File too large" in line
    assert ottla(*asked).returncode == 0


@pytest.mark.slow
def test_a_process_that_is_killed_costs_a_study_nothing(tiny, tmp_path):
    out = tmp_path / "out"
    asked = ["study", "run", str(tiny), "--engine", "duckdb", "--out", str(out), "--seeds", "60"]
    process = begun(*asked, "--jobs", "2")
    try:
        await_that(lambda: any(out.glob("bronze/_running-*/*")), 60, "nobody works")
        os.kill(simulating(process.pid)[0], signal.SIGKILL)
        told, said = process.communicate(timeout=120)
        assert process.returncode == 0, said
        assert "120 runs." in told
        assert " broke: " not in told
        await_nobody(process)
    finally:
        end(process)


def simulating(parent):
    """Processes of a pool, by number."""
    listed = subprocess.run(
        ["ps", "-ww", "--ppid", str(parent), "-o", "pid=,args="],
        capture_output=True,
        text=True,
        check=True,
    )
    rows = [line.split(None, 1) for line in listed.stdout.splitlines()]
    return [int(pid) for pid, words in rows if "spawn_main" in words]
