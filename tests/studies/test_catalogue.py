"""The studies that ship: each is read, its SQL runs, and what it shares with others is the same.

Their runs are made short and few here, so that all take a minute. Figures are not looked at but
where another implementation counts the same from a history: what was lost, and how long requests
took; and the catalogue of mutants.
"""

import re
from functools import cache

import pytest

from ottla.report.study.page import page
from ottla.sim.chance.choices import Drawn
from ottla.sim.invariants.index import Index
from ottla.sim.invariants.losses import NEVER_ARRIVED, UNDECIDED, UNEXPLAINED, losses
from ottla.sim.mutants.catalogue import CATALOGUE
from ottla.sim.studies.pipeline import Pipeline, Progress
from ottla.sim.studies.reporting import findings_of
from ottla.sim.studies.study import catalogue, parse
from ottla.sim.sweeps.kills import settings_of
from ottla.sim.whole import run_whole
from sim_request_times import Requests
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
"""An engine takes its time for each batch, however small."""
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


@pytest.fixture(scope="module")
def done(tmp_path_factory, duck):
    """The lake of a study that was run, and what was found in it, by the study's name. Each is run
    once."""

    @cache
    def of(name):
        out = tmp_path_factory.mktemp(name)
        seeds = SEEDS.get(name, 1)
        ran = study(out, shorter(name), seeds=seeds, batch_rows=ONE_BATCH, engine=duck)
        return ran.lake, findings_of(ran.lake, duck, f"ottla study run {name}")

    return of


@pytest.mark.slow
@pytest.mark.parametrize("name", SHORTER)
def test_its_sql_runs_and_its_sentences_are_filled(name, done):
    _, findings = done(name)
    assert re.search(r"\d", findings.answer)
    assert "{" not in findings.answer
    assert all(bool(each.rows) != (EMPTY.get(each.title) == name) for each in findings.tables)
    assert all(any(each.points for each in chart.series) for chart in findings.charts)
    assert findings.broke == 0
    assert 1 <= len(findings.worst) <= 3
    assert len(page(findings, {}).encode()) < 1_000_000


@pytest.mark.slow
@pytest.mark.parametrize("name", SHORTER)
def test_spark_says_the_same(name, done, spark):
    """Of tables that are there; `test_golden` and `test_engines` have it make them."""
    lake, mine = done(name)
    steps: list[Progress] = []
    Pipeline(lake, spark, steps.append).run()
    assert not any(step.fresh for step in steps)
    theirs = findings_of(lake, spark, "")
    assert theirs.answer == mine.answer
    assert theirs.tables == mine.tables
    assert theirs.worst == mine.worst
    for one, other in zip(theirs.charts, mine.charts, strict=True):
        assert [each.name for each in one.series] == [each.name for each in other.series]
        for a, b in zip(one.series, other.series, strict=True):
            assert [x for x, _ in a.points] == [x for x, _ in b.points]
            assert [y for _, y in a.points] == pytest.approx([y for _, y in b.points])


TOOK = {
    "truncate": "took_truncate",
    "crash": "took_crash",
    "refused": "took_refused",
    NEVER_ARRIVED: "took_never",
    UNDECIDED: "took_undecided",
    UNEXPLAINED: "took_unknown",
}


def rows_of(variant):
    """Its history with seed 0, as nobody but a study's own SQL has counted it."""
    return run_whole(Drawn(0), variant.config, variant.failure)[0].rows


@pytest.mark.slow
def test_acks_loses_what_its_histories_have_lost(tmp_path):
    failures = ["the leader is cut off and loses power", "all lose power"]
    text = re.sub(
        r"failure = \[.*?\]", f"failure = {failures}", catalogue()["acks"], flags=re.DOTALL
    )
    done = study(tmp_path, text, seeds=1)
    lost = {row["variant"]: row for row in contents(done, "gold_losses")}
    runs = {row["variant"]: row for row in contents(done, "runs")}
    done.engine.close()
    variants = parse(text).variants
    assert len(variants) == len(runs) == 20
    for variant in variants:
        found = losses(Index(rows_of(variant)))
        mine = runs[variant.number]
        assert mine["lost"] == sum(each.lost for each in found), variant.label
        assert mine["acknowledged"] == sum(each.acknowledged for each in found), variant.label
        taken = [pair for each in found for pair in each.explained]
        for took, column in TOOK.items():
            counted = sum(count for told, count in taken if told.startswith(took))
            assert lost[variant.number][column] == counted, (variant.label, took)
    assert sum(row["lost"] for row in runs.values()) > 100


def figures(tmp_path, name, text, table):
    """Rows of a table of a study that was run with seed 0."""
    done = study(tmp_path, text, seeds=1)
    (asked,) = (each for each in parse(catalogue()[name]).tables if each.title == table)
    found = done.engine.rows(asked.sql)
    done.engine.close()
    return found


@pytest.mark.slow
def test_pipelining_has_the_rates_of_its_histories(tmp_path):
    text = re.sub(r"client_rtt_us = .*", "client_rtt_us = [1_000]", catalogue()["pipelining"])
    found = figures(tmp_path, "pipelining", text, "Every case")
    rates = {(row["request_kb"], row["in_flight"], row["producer"]): row for row in found}
    variants = parse(text).variants
    assert len(variants) == len(rates) == 11
    for variant in variants:
        config, requests = variant.config, Requests(rows_of(variant))
        producer = "idempotent" if config.idempotent else "plain"
        row = rates[10 * config.batch_records, config.in_flight, producer]
        rate = 10 * requests.rate(config.batch_records, config.in_flight)
        assert row["records_per_second"] == pytest.approx(rate), variant.label
        trips = requests.trips()
        assert row["trip_us"] == pytest.approx(sum(trips) / len(trips)), variant.label
        beyond = row["round_trip_ms"] * 1_000 + row["writing_us"] + row["in_the_brokers_us"]
        assert beyond == pytest.approx(min(trips)), variant.label


@pytest.mark.slow
def test_idempotence_has_the_latencies_of_its_histories(tmp_path):
    text = shorter("idempotence")
    found = figures(tmp_path, "idempotence", text, "Latency with requests always in flight")
    means = {(row["always_in_flight"], row["profile_and_producer"]): row for row in found}
    variants = [each for each in parse(text).variants if each.line == "always 5 in flight"]
    assert (len(variants), len(means)) == (6, 18)
    for variant in variants:
        trips = Requests(rows_of(variant)).trips()[40:]
        producer = "idempotent" if variant.config.idempotent else "plain"
        row = means[5, f"{variant.config.profile}, {producer}"]
        assert row["mean_us"] == pytest.approx(sum(trips) / len(trips)), variant.label


def test_mutants_are_those_of_the_catalogue_under_its_settings():
    variants = parse(catalogue()["mutants"]).variants
    assert [each.config for each in variants] == [settings_of(row) for row in CATALOGUE]
    assert [each.label for each in variants] == [f"{row.id} {row.lacks}" for row in CATALOGUE]
