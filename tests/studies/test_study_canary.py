"""Every sweep of a study carries the canary, and one that nobody notices makes the study void.

Where nobody is to notice, every process of the command is blind, those of the pool and of Spark
too: its checkers see nothing.
"""

import json
from html import unescape

import pytest

from ottla.sim import run as run_module
from ottla.sim.invariants.findings import Findings
from ottla.sim.studies.lake import Lake
from ottla.sim.studies.pipeline import Pipeline
from ottla.sim.studies.plan import plan_of
from ottla.sim.studies.reporting import findings_of
from ottla.sim.studies.study import VoidStudyError, parse
from ottla.sim.sweeps.canary import Canary
from studies_patched import run_patched
from studies_spark import need_spark
from studies_tiny import BATCH_ROWS, SEEDS, TINY, WAVE

pytestmark = pytest.mark.slow

NOTICED = "canary M06 and M03: noticed by sim-I09 and sim-I25"
AS_KEPT = f"{NOTICED}, as kept with the runs"
MISSED = Canary("M06", False, "", "")
BLIND_IN_THE_END = """
from ottla.sim import run

run.judged_at_the_end = lambda _: iter(())
"""
BLIND = f"""{BLIND_IN_THE_END}
from ottla.sim.invariants.findings import Findings

run.attach = lambda _, *, stop: Findings(stop=stop)
"""
LATER = ("silver", "gold", "report.html")


class Counted:
    """An engine whose canary is counted, and may be said to have been missed."""

    def __init__(self, engine):
        self.engine = engine
        self.canaries = 0
        self.missed = False

    def canary(self):
        self.canaries += 1
        return MISSED if self.missed else self.engine.canary()

    def __getattr__(self, name):
        return getattr(self.engine, name)


def run(out, engine):
    """The study; what was said, and what the report says of the canary."""
    said: list[str] = []
    lake = Lake(out, plan_of(parse(TINY), SEEDS, 0, wave=WAVE, batch_rows=BATCH_ROWS))
    try:
        Pipeline(lake, engine, lambda _: None, said.append).run()
        return said, findings_of(lake, engine, "").canary
    finally:
        lake.close()


def test_it_runs_where_the_seeds_run(engine, monkeypatch):
    """This process is blind, and no process of the pool or of Spark is."""
    monkeypatch.setattr(run_module, "attach", lambda _, *, stop: Findings(stop=stop))
    monkeypatch.setattr(run_module, "judged_at_the_end", lambda _: iter(()))
    found = engine.canary()
    assert str(found) == NOTICED
    assert found.reason.startswith("sim-I09 at event ")


def test_it_is_run_anew_where_the_sweep_goes_on_or_nothing_is_kept_of_it(tmp_path, duck):
    engine = Counted(duck)
    reported = "M06 and M03 noticed by sim-I09 and sim-I25"
    assert run(tmp_path, engine) == ([NOTICED], reported)
    kept = (tmp_path / "study.canary.json").read_bytes()
    assert run(tmp_path, engine) == ([AS_KEPT], reported)
    assert engine.canaries == 1
    (tmp_path / "bronze" / "wave=00001" / "_SUCCESS").unlink()
    assert run(tmp_path, engine) == ([NOTICED], reported)
    (tmp_path / "study.canary.json").unlink()
    assert run(tmp_path, engine) == ([NOTICED], reported)
    assert engine.canaries == 3
    assert (tmp_path / "study.canary.json").read_bytes() == kept


@pytest.mark.parametrize("kept", ["{", "[]", "7", '{"mutant": "M06"}', "\\", "noticed: yes"])
def test_what_cannot_be_read_of_it_is_nothing(tmp_path, kept):
    lake = Lake(tmp_path, plan_of(parse(TINY), SEEDS, 0))
    lake.keep_canary(MISSED)
    assert lake.canary() == MISSED
    wrong = json.dumps({**MISSED._asdict(), "noticed": "yes"})
    (tmp_path / "study.canary.json").write_text(wrong if kept == "noticed: yes" else kept)
    assert lake.canary() is None
    lake.close()


def test_a_sweep_that_had_begun_is_void_too_and_does_no_run(tmp_path, duck):
    """Nor is what was kept of a canary that was missed taken for one that was noticed."""
    engine = Counted(duck)
    run(tmp_path, engine)
    wave = tmp_path / "bronze" / "wave=00001"
    (wave / "_SUCCESS").rename(tmp_path / "bronze" / "_put_by")
    engine.missed = True
    with pytest.raises(VoidStudyError, match="void: the canary, mutant M06, was"):
        run(tmp_path, engine)
    assert not (wave / "_SUCCESS").exists()
    (tmp_path / "bronze" / "_put_by").rename(wave / "_SUCCESS")
    with pytest.raises(VoidStudyError):
        run(tmp_path, engine)
    engine.missed = False
    assert run(tmp_path, engine) == ([NOTICED], "M06 and M03 noticed by sim-I09 and sim-I25")


DUCK = ["--engine", "duckdb", "--jobs", "2"]


@pytest.mark.parametrize(
    ("options", "blind", "missed"),
    [
        pytest.param(DUCK, BLIND, MISSED, id="duck"),
        pytest.param(DUCK, BLIND_IN_THE_END, MISSED._replace(mutant="M03"), id="duck, in the end"),
        pytest.param(["--master", "local[2]"], BLIND, MISSED, id="spark", marks=pytest.mark.slow),
    ],
)
def test_a_study_whose_checkers_are_blind_is_void(tmp_path, options, blind, missed):
    if "--master" in options:
        need_spark()
    done = run_patched(tmp_path, blind, *options, seeds=2)
    assert done.returncode == 1, done.stderr
    assert (
        done.stderr.splitlines(keepends=True)[-1] == f"ottla: {missed}\n"
    )  # a JVM has its own to say first
    assert not (tmp_path / "out" / "bronze").exists()
    assert not any((tmp_path / "out" / each).exists() for each in LATER)
    kept = json.loads((tmp_path / "out" / "study.canary.json").read_text())
    assert kept == missed._asdict()
    if "--master" in options:
        return  # one that sees is any other study on Spark
    seeing = run_patched(tmp_path, "", *options, seeds=2)
    assert seeing.returncode == 0, seeing.stderr
    assert NOTICED in seeing.stdout.splitlines()
    report = unescape((tmp_path / "out" / "report.html").read_text(encoding="utf-8"))
    assert "M06 and M03 noticed by sim-I09 and sim-I25" in report
