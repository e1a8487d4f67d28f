"""Study `acks`, asked of hand-made tables: what was never sent, what took the last record lost.

A producer gives records up that it never sent, and then no table of batches has them. Variants are
run with the same seeds: one that has the same figures as another says nothing new, and makes no
interval narrower. Where all seeds say the same there is no interval.
"""

import re
from importlib.resources import files

import pytest

from ottla.sim.studies.findings import table_of
from ottla.sim.studies.names import VARIANTS
from ottla.sim.studies.pairs import PAIRS, pairs_query
from ottla.sim.studies.sheets import GOLD, QUANTILES
from ottla.sim.studies.study import catalogue, parse
from ottla.sim.studies.worst import worst_runs
from studies_cases import make, put_silver, put_typed, table

STUDY = parse(catalogue()["acks"])
VARIANT_TYPES = {
    "variant": "BIGINT",
    "line": "VARCHAR",
    "acks": "BIGINT",
    "flush": "VARCHAR",
    "failure": "VARCHAR",
}
GIVEN = {
    VARIANTS: """
| variant | line     | acks | flush     | failure              |
| 0       | acks=1   | 1    | each-turn | the leader is killed |
| 1       | acks=all | -1   | each-turn | the leader is killed |
| 2       | acks=all | -1   | off       | the leader is killed |
""",
    "silver runs": """
| run_id | variant | seed | judged | broke | digest | handed | acknowledged | lost | copies |
| 0      | 0       | 0    | true   | 0     | 0      | 60     | 60           | 3    | 0      |
| 1      | 1       | 0    | true   | 0     | 1      | 60     | 40           | 0    | 0      |
| 2      | 2       | 0    | true   | 0     | 2      | 60     | 60           | 0    | 0      |
| 3      | 0       | 1    | true   | 0     | 3      | 60     | 60           | 0    | 0      |
| 4      | 1       | 1    | true   | 0     | 4      | 60     | 24           | 0    | 0      |
| 5      | 2       | 1    | true   | 0     | 5      | 60     | 60           | 0    | 0      |
""",
    "silver requests": """
| run_id | variant | records | attempts | outcome |
| 0      | 0       | 60      | 2        | ok      |
| 3      | 0       | 60      | 2        | ok      |
| 1      | 1       | 40      | 1        | ok      |
| 1      | 1       | 5       | 2        | info    |
| 4      | 1       | 24      | 1        | ok      |
| 4      | 1       | 21      | 4        | fail    |
""",
    "silver acked": """
| run_id | variant | acks | op | ok_us   | lost | took          |
| 0      | 0       | 1    | 3  | 1000000 | 1    | truncate      |
| 0      | 0       | 1    | 4  | 2000000 | 1    | truncate      |
| 0      | 0       | 1    | 5  | 2000000 | 1    | crash         |
| 0      | 0       | 1    | 6  | 3000000 | 0    | -             |
""",
}


@pytest.fixture(scope="module", autouse=True)
def made(engine):
    rows = {name: table(text.strip().splitlines()) for name, text in GIVEN.items()}
    put_typed(engine, VARIANTS, VARIANT_TYPES, rows.pop(VARIANTS))
    put_silver(engine, rows)
    engine.make(PAIRS, pairs_query(()))
    make(engine, GOLD, STUDY.text)
    make(engine, QUANTILES)


def asked(engine, title):
    (found,) = (each for each in STUDY.tables if each.title == title)
    return engine.rows(found.sql)


def test_what_was_never_sent_is_not_acknowledged(engine):
    found = table_of("", asked(engine, "What the minimum in sync costs"))
    assert found.rows == (
        ("acks=1", "100\u00a0%", "0", "2", "0", "0"),
        ("acks=all", "53.3\u00a0%", "56", "2", "0", "0"),
    )


def test_an_interval_is_one_of_seeds_and_there_is_none_where_nothing_was_lost(engine):
    """Two seeds with 3 and 0 lost: 1.5 with 12.706 times 1.5 on each side, cut off at 0."""
    for chart in STUDY.charts:
        rows = {(row["series"], row["x"]): row for row in engine.rows(chart.sql)}
        spans = {name: (row["y"], row["low"], row["high"]) for name, row in rows.items()}
        some = [span for (series, x), span in spans.items() if "acks=1" in (series, x)]
        assert some == [(1.5, 0, pytest.approx(1.5 + 12.7062 * 1.5, rel=1e-5))]
        assert all(span == (0, None, None) for span in spans.values() if span not in some)
        assert len(spans) > 1


def test_copies_of_a_draw_make_no_interval_narrower(engine):
    """Another variant with the same seeds that loses the same, drawn as one with the first."""
    asked = STUDY.charts[0].sql
    once = [row for row in engine.rows(asked) if row["x"] == "acks=1"]
    twice = [row for row in engine.rows(twin(asked)) if row["x"] == "acks=1"]
    assert once == twice


def twin(sql):
    """The same of runs and variants that are there twice."""
    runs = "SELECT variant, seed, lost, broke FROM runs"
    names = "SELECT variant, line, flush, acks FROM variants"
    return sql.replace(
        "FROM runs r",
        f"FROM ({runs} UNION ALL SELECT variant + 9, seed, lost, broke FROM runs) r",
    ).replace(
        "JOIN variants v",
        f"JOIN ({names} UNION ALL SELECT variant + 9, line, flush, acks FROM variants) v",
    )


def test_what_took_the_last_one_is_not_what_is_last_in_the_alphabet(engine):
    first, *_ = worst_runs(STUDY, engine)
    assert (first.run_id, first.at) == (0, 2_000_000)
    assert first.why == (
        "3 acknowledged records are gone; the last one was acknowledged at 2.000 s, and was "
        "lost because it was not synced when the node went down."
    )


def test_whatever_took_a_record_is_said_in_words():
    """A record that never arrived was lost "because of never arrived"."""
    assert STUDY.worst is not None
    gold = (files("ottla.sim.studies") / "sql" / "gold.sql").read_text(encoding="utf-8")
    taken = set(re.findall(r"took = '([a-z ]+)'", gold))
    said = set(re.findall(r"WHEN '([a-z ]+)' THEN", STUDY.worst.sql))
    assert len(taken) == 6
    assert taken - {"unknown"} == said
