"""Gold tables of hand-made silver tables, with known answers; no rows give none, and no error."""

import pytest

from ottla.sim.studies.names import GOLD_PREFIX
from ottla.sim.studies.pairs import PAIRS, pairs, pairs_query
from ottla.sim.studies.sheets import GOLD, sheets
from ottla.sim.studies.study import parse
from ottla.sim.sweeps.bounds import interval
from studies_cases import make, projected, put_silver, put_typed, tables

TABLES = tables("gold.txt")
EXPECTED = {name: rows for name, rows in TABLES.items() if name.startswith("=> ")}
MADE = [each.name for each in sheets(GOLD) if not each.shared]
STUDY = """
name = "pairs"
title = "Pairs"
question = "Which?"
seeds = 1
[grid]
profile = ["reference", "reference-strict", "redpanda-5157"]
acks = [1, -1]
[answer]
sql = "SELECT COUNT(*) AS n FROM runs"
text = "{n}"
"""


@pytest.fixture(scope="module")
def gold(engine):
    given = {name: list(rows) for name, rows in TABLES.items()}
    given["silver failovers"] += [{"variant": 1, "total_us": us} for us in range(101, 0, -1)]
    put_silver(engine, given)
    put_typed(engine, PAIRS, {"variant": "BIGINT", "other": "BIGINT"}, [{"variant": 0, "other": 1}])
    make(engine, GOLD)
    return {each: engine.rows(f"SELECT * FROM {GOLD_PREFIX}{each}") for each in MADE}


@pytest.mark.parametrize("told", EXPECTED)
def test_a_gold_table_is_what_its_case_says(gold, told):
    expected = EXPECTED[told]
    found = gold[told.removeprefix("=> ").partition(",")[0]]
    assert projected(found, expected[0]) == projected(expected, expected[0])


def test_each_gold_table_has_a_case():
    assert {told.removeprefix("=> ").partition(",")[0] for told in EXPECTED} == set(MADE)


@pytest.mark.parametrize(
    ("name", "hits", "tries"),
    [
        ("verdicts", "broken", "runs"),
        ("losses", "lost", "acknowledged"),
        ("kills", "failed", "runs"),
    ],
)
def test_an_interval_is_that_of_sentences_and_ends_at_no_share_and_at_all(gold, name, hits, tries):
    for row in (each for each in gold[name] if each[tries]):
        found = row["share"], row["low"], row["high"]
        assert found == pytest.approx(interval(row[hits], row[tries]), rel=1e-12)
        assert (row["low"] == 0) == (row[hits] == 0)
        assert (row["high"] == 1) == (row[hits] == row[tries])


def test_no_runs_no_rows(duck):
    put_silver(duck, {})
    duck.make(PAIRS, pairs_query(()))
    make(duck, GOLD)
    assert {each: duck.rows(f"SELECT * FROM {GOLD_PREFIX}{each}") for each in MADE} == {
        each: [] for each in MADE
    }


def test_pairs_differ_in_their_profile_alone(engine):
    variants = parse(STUDY).variants
    acks = [each.cells["acks"] for each in variants]
    profile = [each.cells["profile"] for each in variants]
    expected = [
        (one, other)
        for one in range(6)
        for other in range(one + 1, 6)
        if acks[one] == acks[other] and profile[one] != profile[other]
    ]
    assert sorted(pairs(variants)) == expected
    engine.make(PAIRS, pairs_query(variants))
    found = engine.rows(f"SELECT * FROM {PAIRS}")
    assert sorted((row["variant"], row["other"]) for row in found) == expected


def test_what_is_drawn_for_one_alone_is_no_pair():
    """Five in flight are the default: to say so changes no setting, but the swarm draws it of the
    other one. Both were compared as if the profile were all that differed."""
    said = 'profile = "reference-strict"\nin_flight = 5'
    lines = [f"[[variant]]\n{each}\n" for each in ('profile = "reference"', said)]
    head, _, tail = STUDY.partition("[grid]")
    asked = "[answer]" + tail.partition("[answer]")[2] + "".join(lines)
    assert pairs(parse(f"{head}swarm = true\n{asked}").variants) == ()
    assert pairs(parse(f"{head}swarm = false\n{asked}").variants) == ((0, 1),)
