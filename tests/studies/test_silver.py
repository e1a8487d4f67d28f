"""Silver tables of hand-made histories, with known answers; on each engine all cases at once."""

import pytest

from studies_cases import Run, cases, make_silver, projected, write

FILES = ("failovers.txt", "records.txt")
CASES = [(file, case) for file in FILES for case in cases(file)]


@pytest.fixture(scope="module")
def silver(engine, tmp_path_factory):
    runs = [Run(case.events, variant=3, seed=40 + number) for number, (_, case) in enumerate(CASES)]
    make_silver(engine, write(runs, tmp_path_factory.mktemp("silver") / "bronze"))
    tables = {name for _, case in CASES for name in case.expected}
    return {name: engine.rows(f"SELECT * FROM {name}") for name in sorted(tables)}


@pytest.mark.parametrize("number", range(len(CASES)), ids=[case.name for _, case in CASES])
def test_a_history_has_the_tables_that_its_case_says(silver, number):
    _, case = CASES[number]
    for table, expected in case.expected.items():
        found = [row for row in silver[table] if row["run_id"] == number]
        columns = expected[0] if expected else ()
        assert projected(found, columns) == projected(expected, columns), table
        assert len(found) == len(expected)
        assert {row["variant"] for row in found} <= {3}
