"""Silver tables of hand-made histories, with known answers; on each engine all cases at once."""

import pytest

from ottla.sim.studies.sheets import SILVER, sheet, sheets
from studies_cases import Run, cases, make_silver, projected, write

FILES = ("failovers.txt", "records.txt", "runs.txt")
CASES = [(file, case) for file in FILES for case in cases(file)]
N = len(CASES)
REACHED = [
    Run((), variant=0, seed=90, reached=("here", "here", "there")),
    Run((), variant=1, seed=90, reached=("here",)),
    Run((), variant=0, seed=91, reached=("here",)),
    Run((), variant=1, seed=91),
]
"""Runs behind those of the cases."""
REACHED_ROWS = [
    {"run_id": N, "variant": 0, "seed": 90, "point": "here", "runs": 2},
    {"run_id": N, "variant": 0, "seed": 90, "point": "there", "runs": 1},
    {"run_id": N + 1, "variant": 1, "seed": 90, "point": "here", "runs": 1},
]
KNOWN = [(name, row) for _, case in CASES for name, rows in case.expected.items() for row in rows]
KNOWN += [("reached", row) for row in REACHED_ROWS]
TABLES = sorted({each.name for each in sheets(SILVER) if not each.shared})


HEAD = {"run_id", "variant", "seed"}
"""What no case says of its rows: it is the same in all of them."""


@pytest.fixture(scope="module")
def silver(engine, tmp_path_factory):
    runs = [
        Run(case.events, variant=3, seed=40 + number, behind=case.behind)
        for number, (_, case) in enumerate(CASES)
    ]
    make_silver(engine, write(runs + REACHED, tmp_path_factory.mktemp("silver") / "bronze"))
    return {name: engine.rows(f"SELECT * FROM {name}") for name in TABLES}


@pytest.mark.parametrize("number", range(len(CASES)), ids=[case.name for _, case in CASES])
def test_a_history_has_the_tables_that_its_case_says(silver, number):
    _, case = CASES[number]
    head = {"run_id": number, "variant": 3, "seed": 40 + number}
    for table, expected in case.expected.items():
        found = [row for row in silver[table] if row["run_id"] == number]
        columns = expected[0] if expected else ()
        assert projected(found, columns) == projected(expected, columns), table
        assert len(found) == len(expected)
        for row in found:
            assert {each: row[each] for each in row.keys() & HEAD}.items() <= head.items()


def test_a_point_of_coverage_is_told_once_of_a_variant_with_its_first_run_and_how_many(silver):
    assert projected(silver["reached"], REACHED_ROWS[0]) == projected(REACHED_ROWS, REACHED_ROWS[0])


def test_each_column_of_each_silver_table_has_a_case_in_which_it_is_not_null():
    asked = {(name, column) for name in TABLES for column in sheet(SILVER, name).types}
    told = {(name, column) for name, row in KNOWN for column in row if row[column] is not None}
    assert {(name, column) for name, column in asked - told if column not in HEAD} == set()
    assert {name for name, _ in KNOWN} == set(TABLES)
