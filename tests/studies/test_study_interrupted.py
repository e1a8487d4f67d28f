"""Who ends a study early is left with no process of it, and goes on with it later.

Ctrl-C and SIGTERM are one to it, but for the word and the status. They come to its process alone,
as from `kill`, or to all that it has started as well, as from a terminal.
"""

import os
import signal
from contextlib import contextmanager

import pytest

from awaiting import await_that
from cli_groups import await_nobody, begun, end
from cli_process import ottla
from ottla.sim.studies.sheets import sheets
from studies_spark import need_spark
from studies_tiny import TINY

pytestmark = pytest.mark.slow

TOLD = {signal.SIGINT: "interrupted", signal.SIGTERM: "stopped by SIGTERM"}
SIGNALS = pytest.mark.parametrize("number", TOLD, ids=["INT", "TERM"])


@SIGNALS
@pytest.mark.parametrize("to_all", [True, False], ids=["terminal", "kill"])
def test_a_signal_ends_all_quietly(tmp_path, to_all, number):
    file = tmp_path / "long.toml"
    file.write_text(TINY)
    out = tmp_path / "out"
    options = ["--seeds", "100000", "--engine", "duckdb", "--jobs", "2", "--out", str(out)]
    process = begun("study", "run", str(file), *options)
    try:
        at_work = out / "bronze"
        await_that(lambda: len(list(at_work.glob("_running-*/*"))) == 2, 60, "nobody works")
        (os.killpg if to_all else os.kill)(process.pid, number)
        _, said = process.communicate(timeout=30)
        assert (process.returncode, said) == (
            128 + number,
            f"ottla: {TOLD[number]}; the same command goes on from here\n",
        )
        await_nobody(process)
        assert not list(out.glob("_scratch-*"))
    finally:
        end(process)


MAKING = "silver/requests/_making*/_temporary"
SILVER = "silver/*/batch=*/_SUCCESS"
SEEDS = 16
TABLES = len([each for each in sheets("silver") if not each.shared])


@pytest.mark.parametrize(
    ("under_way", "to_all", "number"),
    [
        pytest.param(
            *("bronze/_running-*/*", False, signal.SIGTERM),
            id="sweep-kill-TERM",
            marks=pytest.mark.nightly,
        ),
        pytest.param(
            *(MAKING, True, signal.SIGINT),
            id="SQL-terminal-INT",
            marks=pytest.mark.slow(seconds=40),
        ),
    ],
)
def test_a_signal_ends_spark_quietly_too_and_the_study_is_gone_on_with(
    tmp_path, under_way, to_all, number
):
    """In the middle of SQL, where PySpark, which took Ctrl-C for itself, called the JVM over a
    connection that was waiting, and ended in five tracebacks; by night in a sweep too."""
    with on_spark(tmp_path) as process:
        await_that(lambda: any(tmp_path.glob(under_way)) or process.poll(), 300, "nobody works")
        assert process.poll() is None, process.communicate()
        (os.killpg if to_all else os.kill)(process.pid, number)
        _, said = process.communicate(timeout=120)
        assert process.returncode == 128 + number, said
        assert f"ottla: {TOLD[number]}; the same command goes on from here\n" in said
        assert not any(word in said for word in ("Traceback", "Exception", "\tat ")), said
        await_nobody(process)
        assert not list(tmp_path.glob("_scratch-*"))
    gone_on_with(tmp_path)


@pytest.mark.nightly
def test_a_driver_that_is_killed_while_spark_judges_takes_its_jvm_along(tmp_path):
    """What the JVM had made on the way is left, and gone when the study is gone on with."""
    with on_spark(tmp_path) as process:
        await_that(lambda: len(list(tmp_path.glob(SILVER))) == TABLES, 300, "nobody works")
        await_that(lambda: any(tmp_path.glob("_scratch-*/ottla_*")), 60, "nobody judges")
        assert not list(tmp_path.glob("silver/verdicts/*"))
        process.kill()
        await_nobody(process)
    assert list(tmp_path.glob("_scratch-*/ottla_*"))
    gone_on_with(tmp_path)


def study(out):
    file = out.with_suffix(".toml")
    file.write_text(TINY)
    return ["study", "run", str(file), "--seeds", str(SEEDS), "--out", str(out)]


@contextmanager
def on_spark(out):
    """A study, until it is left."""
    need_spark()
    process = begun(*study(out), "--engine", "spark", "--master", "local[2]")
    try:
        yield process
    finally:
        end(process)


def gone_on_with(out):
    """By the other engine; nothing is left that should not last."""
    done = ottla(*study(out), "--engine", "duckdb", within=300)
    assert done.returncode == 0, done.stderr
    assert f"{2 * SEEDS} runs." in done.stdout
    assert not list(out.rglob("_making-*")) + list(out.glob("_scratch-*"))
