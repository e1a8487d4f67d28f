"""The studies that ship: each is read, its SQL runs, and what it shares with others is the same.

Their runs are made short and few here, so that all take a minute. Figures are not looked at but
where another implementation counts the same: experiment `acks`, and the catalogue of mutants.
"""

import re

import pytest

from ottla.report.study.page import page
from ottla.sim.experiments import acks
from ottla.sim.experiments.conduct import play
from ottla.sim.invariants.losses import NEVER_ARRIVED, UNDECIDED, UNEXPLAINED
from ottla.sim.mutants.catalogue import CATALOGUE
from ottla.sim.studies.pipeline import Pipeline, Progress
from ottla.sim.studies.reporting import findings_of
from ottla.sim.studies.study import catalogue, parse
from ottla.sim.sweeps.kills import settings_of
from studies_tiny import contents, study

SHORTER = {
    "acks": {"records": 60, "load_ms": 7_000},
    "pipelining": {},
    "idempotence": {"records": 60},
    "failover": {"records": 60, "load_ms": 7_000},
    "mutants": {"records": 60, "load_ms": 3_000},
    "compare-profiles": {"records": 60, "load_ms": 4_000},
    "clean": {},
}
SEEDS = {"compare-profiles": 3, "idempotence": 2, "clean": 20}
ONE_BATCH = 1_000_000
"""Spark takes its time for each batch, however small."""
EMPTY = {"What was found": "clean"}
"""Tables that are empty where all is well, and whose they are."""


def shorter(name):
    """The text of a study with these settings instead of its own."""
    text = catalogue()[name]
    for setting, value in SHORTER[name].items():
        line = f"{setting} = {value}\n"
        text, found = re.subn(rf"^{setting} = \d[\d_]*\n", line, text, flags=re.MULTILINE)
        if not found:
            text = text.replace("[settings]\n", f"[settings]\n{line}", 1)
    if name == "acks":
        text = re.sub(r'failure = \[.*?"all lose', 'failure = ["all lose', text, flags=re.DOTALL)
    if name == "mutants":
        head, *lines = text.partition("[answer]")[0].split("[[variant]]")
        text = "[[variant]]".join((head, *lines[:8])) + "[answer]" + text.partition("[answer]")[2]
    return text


def test_these_ship():
    assert set(catalogue()) == set(SHORTER)
    for name, text in catalogue().items():
        assert parse(text).name == name


@pytest.mark.parametrize("name", SHORTER)
def test_its_sql_runs_and_its_sentences_are_filled(name, tmp_path):
    done = study(tmp_path, shorter(name), seeds=SEEDS.get(name, 1))
    try:
        findings = findings_of(done.lake, done.engine, f"ottla study run {name}")
    finally:
        done.engine.close()
    assert re.search(r"\d", findings.answer)
    assert "{" not in findings.answer
    assert all(bool(each.rows) != (EMPTY.get(each.title) == name) for each in findings.tables)
    assert all(any(each.points for each in chart.series) for chart in findings.charts)
    assert findings.broke == 0
    assert 1 <= len(findings.worst) <= 3
    assert len(page(findings, {}).encode()) < 1_000_000


@pytest.mark.slow
@pytest.mark.parametrize("name", SHORTER)
def test_spark_says_the_same(name, tmp_path, spark):
    """Of tables that are there; `test_golden` and `test_engines` have it make them."""
    text, seeds = shorter(name), SEEDS.get(name, 1)
    done = study(tmp_path, text, seeds=seeds, batch_rows=ONE_BATCH)
    mine = findings_of(done.lake, done.engine, "")
    done.engine.close()
    steps: list[Progress] = []
    Pipeline(done.lake, spark, steps.append).run()
    assert not any(step.fresh for step in steps)
    theirs = findings_of(done.lake, spark, "")
    assert theirs.answer == mine.answer
    assert theirs.tables == mine.tables
    assert theirs.worst == mine.worst
    for one, other in zip(theirs.charts, mine.charts, strict=True):
        assert [each.name for each in one.series] == [each.name for each in other.series]
        for a, b in zip(one.series, other.series, strict=True):
            assert [x for x, _ in a.points] == [x for x, _ in b.points]
            assert [y for _, y in a.points] == pytest.approx([y for _, y in b.points])


def test_acks_runs_what_the_experiment_runs():
    mine = [(each.config, each.failure) for each in parse(catalogue()["acks"]).variants]
    assert mine == [(each.config, each.key[2]) for each in acks.EXPERIMENT.variants]


TOOK = {
    "truncate": "took_truncate",
    "crash": "took_crash",
    "refused": "took_refused",
    NEVER_ARRIVED: "took_never",
    UNDECIDED: "took_undecided",
    UNEXPLAINED: "took_unknown",
}


def test_acks_loses_what_the_experiment_loses(tmp_path):
    failures = ["the leader is cut off and loses power", "all lose power"]
    text = re.sub(
        r"failure = \[.*?\]", f"failure = {failures}", catalogue()["acks"], flags=re.DOTALL
    )
    done = study(tmp_path, text, seeds=1)
    lost = {row["variant"]: row for row in contents(done, "gold_losses")}
    runs = {row["variant"]: row for row in contents(done, "runs")}
    done.engine.close()
    experiment = [each for each in acks.EXPERIMENT.variants if each.key[2] in failures]
    assert len(experiment) == len(runs) == 20
    for number, variant in enumerate(experiment):
        counted = acks.measure(play(variant, 0), variant.config)
        assert runs[number]["lost"] == counted["lost"], variant.key
        assert runs[number]["acknowledged"] == counted["acknowledged"], variant.key
        for took, column in TOOK.items():
            assert lost[number][column] == counted[took], (variant.key, took)
    assert sum(row["lost"] for row in runs.values()) > 100


def test_mutants_are_those_of_the_catalogue_under_its_settings():
    variants = parse(catalogue()["mutants"]).variants
    assert [each.config for each in variants] == [settings_of(row) for row in CATALOGUE]
    assert [each.label for each in variants] == [f"{row.id} {row.lacks}" for row in CATALOGUE]
