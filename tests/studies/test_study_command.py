"""`ottla study` as a user runs it: in a process of its own, with and without Java.

Java is taken away by a PATH that has none, or made old by one that has a program which says so.
What is told is read from both outputs as it stands: a wish that cannot be had is one line and
status 2, and nothing on standard output.
"""

import html
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet
from typer.testing import CliRunner

from cli_process import PROGRAM, ottla
from ottla.commands.study.app import app
from ottla.sim.studies import engine
from ottla.sim.studies.lake import made, making, mark
from ottla.sim.studies.study import StudyError
from ottla.sim.sweeps.canary import Canary
from studies_spark import need_spark
from studies_tiny import TINY


@pytest.fixture
def tiny(tmp_path):
    path = tmp_path / "tiny.toml"
    path.write_text(TINY)
    return path


@pytest.fixture
def no_java(monkeypatch, tmp_path):
    """An environment whose PATH has no Java, as most machines are."""
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.delenv("SPARK_REMOTE", raising=False)


def java(folder, says):
    """A program that answers as a Java of some version does."""
    folder.mkdir()
    program = folder / "java"
    program.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
    program.chmod(0o755)
    return f"{folder}:/usr/bin:/bin"


def refused(*arguments):
    """The line, and there is no other: one of progress (`plan, 0 s`) had come before it."""
    done = ottla("study", *arguments)
    assert done.returncode == 2, done.stderr
    assert not done.stdout
    (line,) = done.stderr.splitlines()
    return line.removeprefix("ottla: ")


@pytest.mark.slow
@pytest.mark.usefixtures("no_java")
def test_a_study_is_run_and_gone_on_with(tiny, tmp_path):
    out = tmp_path / "out"
    first = ottla("study", "run", tiny, "--seeds", "2", "--out", out)
    assert first.returncode == 0, first.stderr
    lines = first.stdout.splitlines()
    assert lines[0] == "engine, 0 s"
    assert not [line for line in lines if "Spark" in line]
    stages = {line.split()[0] for line in lines}
    assert {"sweep", "silver", "gold"} <= stages
    assert lines[-1].startswith(f"{out}/report.html: ")
    assert any("4 of 4 runs" in line for line in lines)
    plan = json.loads((out / "study.json").read_text())
    assert (plan["seeds"], plan["first"], plan["share"]) == (2, 0, 1.0)
    again = ottla("study", "run", tiny, "--seeds", "2", "--out", out)
    assert "4 of 4 runs (4 were there)" in again.stdout
    assert refused("run", tiny, "--seeds", "1", "--out", out) == (
        f"{out} holds this study with 2 seeds; ask for as many, or for more, or name another folder"
    )


def tables_of(folder):
    """Every row of every silver and gold table, in an order that the engine does not choose."""
    found = {}
    for layer in ("silver", "gold"):
        for path in sorted((folder / layer).glob("*")):
            rows = parquet.read_table(path, partitioning=None).to_pylist()
            found[f"{layer}/{path.name}"] = sorted(map(repr, rows))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("wave", [3, 4])
def test_more_seeds_go_on_with_a_study_and_end_as_if_it_had_them_at_once(tiny, tmp_path, wave):
    """It was refused: who wanted a narrower interval began from nothing."""
    grown, whole = tmp_path / "grown", tmp_path / "whole"
    asked = ["study", "run", tiny, "--engine", "duckdb", "--wave", wave]
    ottla(*asked, "--seeds", "2", "--out", grown)
    more = ottla(*asked, "--seeds", "5", "--out", grown)
    there = 4 // wave * wave
    assert f"10 of 10 runs ({there} were there)" in more.stdout, more.stderr
    ottla(*asked, "--seeds", "5", "--out", whole)
    assert tables_of(grown) == tables_of(whole)
    assert json.loads((grown / "study.json").read_text())["seeds"] == 5
    told = ottla("study", "run", tiny, "--engine", "duckdb", "--out", grown)
    assert "10 of 10 runs (10 were there)" in told.stdout, told.stderr


def report(folder):
    return html.unescape((folder / "report.html").read_text(encoding="utf-8"))


@pytest.mark.slow
def test_the_report_says_what_was_said_and_a_study_keeps_its_waves(tiny, tmp_path):
    asked = ["study", "run", tiny.name, "--seeds", "2", "--out", "out", "--engine", "duckdb"]
    asked += ["--jobs", "2", "--share", "0.5"]
    done = ottla(*asked, "--wave", "3", cwd=tmp_path)
    assert done.stdout.splitlines()[-1].startswith("out/report.html: "), done.stderr
    waves = sorted(each.name for each in (tmp_path / "out" / "bronze").iterdir())
    assert waves == ["wave=00000", "wave=00001"]
    assert f"<code>{shlex.join(['ottla', *asked, '--wave', '3'])}</code>" in report(
        tmp_path / "out"
    )
    again = ottla(*asked, cwd=tmp_path)
    assert "4 of 4 runs (4 were there)" in again.stdout
    assert f"<code>{shlex.join(['ottla', *asked, '--wave', '3'])}</code>" in report(
        tmp_path / "out"
    )
    other = ottla(*asked, "--wave", "2", cwd=tmp_path)
    assert other.returncode == 2
    assert "holds another study: wave differs; name another folder" in other.stderr


@pytest.mark.slow
def test_a_verdict_that_sql_does_not_share_ends_the_study(tiny, tmp_path):
    """Python is made to have found something broken in run 1: a row in silver says so."""
    command = ["study", "run", tiny, "--seeds", "2", "--out", tmp_path / "out"]
    command += ["--engine", "duckdb"]
    assert ottla(*command).returncode == 0
    verdicts = tmp_path / "out" / "silver" / "python_verdicts" / "batch=00000"
    (part,) = verdicts.glob("*.parquet")
    schema = parquet.read_schema(part)
    planted = {"run_id": [1], "variant": [1], "invariant": ["sim-I01"]}
    before = made(verdicts)
    assert before is not None
    with making(verdicts) as folder:
        parquet.write_table(pa.table(planted, schema=schema), folder / part.name)
    mark(verdicts, before.of)
    done = ottla(*command)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert "Python finds sim-I01 broken in run 1 (variant 1), SQL does not: ottla sim run" in line


@pytest.mark.slow
@pytest.mark.usefixtures("no_java")
def test_spark_without_java_says_what_to_install(tiny, tmp_path):
    line = refused("run", tiny, "--out", tmp_path / "out", "--engine", "spark")
    assert line == (
        "engine spark: there is no Java: install a Java runtime of version 17 or newer (Debian: "
        "openjdk-17-jre-headless)"
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("missing", "options", "told"),
    [
        ("pandas", [], "pandas is missing, which PySpark asks for: pip install 'ottla[spark]'"),
        ("grpc", ["--master", "sc://127.0.0.1:1"], "not found: pip install 'pyspark[connect]'"),
    ],
)
def test_what_pyspark_asks_for_and_does_not_bring_is_named(tiny, tmp_path, missing, options, told):
    """Both are there where Ottla is developed, so they are taken away."""
    need_spark()
    program = f"""
import importlib.util, sys

find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name == "{missing}" else find(name, *more)
sys.modules["{missing}"] = None

{PROGRAM}
"""
    asked = ["study", "run", str(tiny), "--engine", "spark", "--out", str(tmp_path / "out")]
    done = subprocess.run(
        [sys.executable, "-c", program, *asked, *options],
        check=False,
        capture_output=True,
        text=True,
    )
    (line,) = done.stderr.splitlines()
    assert done.returncode == 2
    assert line.startswith("ottla: engine spark: ")
    assert line.endswith(told)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("says", "told"),
    [
        ('openjdk version "11.0.2" 2019-01-15', "is Java 11: install"),
        ('java version "1.8.0_292"', "is Java 8: install"),
        ("what?", "does not print its version"),
    ],
)
def test_a_java_that_is_too_old_is_none(tiny, tmp_path, monkeypatch, says, told):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", java(tmp_path / "bin", says))
    line = refused("run", tiny, "--out", tmp_path / "out", "--engine", "spark")
    assert line.startswith(f"engine spark: {tmp_path}/bin/java")
    assert told in line


@pytest.mark.slow
def test_an_empty_java_home_names_no_place(tiny, tmp_path, monkeypatch):
    """There was no Java then, although one is on PATH; Spark takes that."""
    monkeypatch.setenv("JAVA_HOME", "")
    monkeypatch.setenv("PATH", java(tmp_path / "bin", 'openjdk version "11.0.2"'))
    line = refused("run", tiny, "--out", tmp_path / "out", "--engine", "spark")
    assert line.startswith(f"engine spark: {tmp_path}/bin/java is Java 11: ")


@pytest.mark.slow
def test_java_is_looked_for_where_java_home_says(tiny, tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert refused("run", tiny, "--out", tmp_path / "out", "--engine", "spark").startswith(
        f"engine spark: there is no Java in JAVA_HOME ({tmp_path})"
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["run", "akcs", "--out", "o"], "no such study: akcs; there are"),
        (["run", "no/such.toml", "--out", "o"], "study no/such.toml: No such file or directory"),
        (["run", os.devnull, "--out", "o"], "study: name is missing"),
        (["run", "/", "--out", "o"], "study /: Is a directory"),
        (["run", "akcs"], "Missing option '--out'."),
        (
            ["run", "akcs", "--out", "s3://bucket/acks"],
            "--out s3://bucket/acks: is a URL; name a folder that driver and executors see",
        ),
        (["run", "akcs", "--out", "o", "--share", "2"], "'--share': 2.0 is not in the range"),
        (
            ["run", "acks", "--out", "o", "--share", "nan"],
            "--share nan: is not a number; give one from 0 to",
        ),
        (
            ["run", "acks", "--out", "o", "--seeds", "99999999999999999999"],
            "99999999999999999999 seeds: at most 14285714 with 70 variants; a study has at most",
        ),
    ],
)
def test_a_wrong_argument_is_one_line(arguments, told):
    assert told in refused(*arguments)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--out", os.devnull], "--out /dev/null is a file; name a folder"),
        (["--out", "out", "--engine", "flink"], "no such engine: flink; one of spark, duckdb"),
        (
            ["--out", "out", "--engine", "duckdb", "--master", "local"],
            "--master local: is for Spark",
        ),
        (["--out", "out", "--engine", "spark", "--jobs", "2"], "--jobs 2: is for DuckDB"),
        (["--out", "out", "--master", "nonsense"], "--master nonsense: is not a master of Spark"),
    ],
)
def test_a_folder_or_an_engine_that_cannot_be_is_one_line(tiny, tmp_path, arguments, told):
    """A folder that a refused command had bound to its study held nothing but its plan."""
    if "nonsense" in arguments:
        need_spark()
    given = [tmp_path / each if each == "out" else each for each in arguments]
    assert told in refused("run", tiny, *given)
    assert not (tmp_path / "out").exists()


ANSWERS_FOUR = TINY.replace("SELECT COUNT(*) AS runs FROM runs", "SELECT run_id AS runs FROM runs")


@pytest.mark.slow
def test_a_mistake_in_what_is_asked_costs_no_run(tiny, tmp_path):
    command = ["study", "run", tiny, "--seeds", "2", "--out", tmp_path / "out"]
    command += ["--engine", "duckdb"]
    tiny.write_text(ANSWERS_FOUR)
    done = ottla(*command)
    assert (done.returncode, done.stderr) == (
        2,
        "ottla: answer.sql: gives 4 rows; one is expected\n",
    )
    tiny.write_text(TINY)
    again = ottla(*command)
    assert again.returncode == 0, again.stderr
    assert "4 of 4 runs (4 were there)" in again.stdout
    assert "SELECT COUNT(*) AS runs FROM runs" in report(tmp_path / "out")


class Asked:
    """An engine that does nothing but say what folder it was asked to fill."""

    name = "asked"

    def __init__(self):
        self.folders = []

    def canary(self):
        return Canary("M06 and M03", True, "sim-I09 and sim-I25", "")

    def simulate(self, work, runs, into, told):
        self.folders.append(into)
        raise StudyError("that is all")

    def close(self):
        pass


def test_engines_are_told_the_whole_path_of_the_folder(tiny, tmp_path, monkeypatch):
    """Executors run in folders of their own: to them `out` is another folder."""
    asked = Asked()

    def opened(*_, scratch, **__):
        asked.folders.append(scratch)
        return asked

    monkeypatch.setattr(engine, "open_engine", opened)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    for out in ("out", "../out"):
        CliRunner().invoke(app, ["run", str(tiny), "--seeds", "2", "--out", out])
    near, far = tmp_path / "here" / "out", tmp_path / "out"
    wave = Path("bronze", "wave=00000")
    assert asked.folders == [near, near / wave, far, far / wave]


@pytest.mark.slow
def test_studies_that_ship_are_listed():
    done = ottla("study", "list")
    assert (done.returncode, done.stderr) == (0, "")
