"""A study that is killed inside a stage: while it judges, and while it writes a table.

In test_resume.py it dies between two folders. Here one study dies at point after point, each time
in a process of its own; what is there when it has been gone on with is what a study that nobody
disturbed has, in all tables, and nothing else.
"""

import pytest

from ottla.sim.studies import names
from studies_killed import killed, left_over
from studies_tiny import contents, study

pytestmark = pytest.mark.slow(seconds=15)

TABLES = (
    *names.SILVER,
    names.VERDICTS,
    *(names.GOLD_PREFIX + each for each in names.GOLD),
    names.VARIANTS,
)
BATCH = "verdicts/batch=00001"
IN_STAGES = {
    "silver": [
        ("half", "requests/batch=00001"),
        ("unmarked", "requests/batch=00001"),
        ("unnamed", "requests/batch=00001"),
    ],
    "judge": [
        ("asked", "judge", "make", 3),
        ("asked", "judge", "rows", 7),
        ("half", BATCH),
        ("unmarked", BATCH),
        ("unnamed", BATCH),
    ],
    "gold": [
        ("half", "gold/variants"),
        ("half", "gold/requests"),
        ("unmarked", "gold/requests"),
        ("unnamed", "gold/requests"),
    ],
}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory, duck):
    return everything(tmp_path_factory.mktemp("undisturbed"), duck)


def everything(out, engine):
    """All tables of a study that is run, or gone on with."""
    pipeline = study(out, engine=engine)
    return {table: contents(pipeline, table) for table in TABLES}


@pytest.mark.parametrize("points", IN_STAGES.values(), ids=list(IN_STAGES))
def test_a_study_that_dies_again_and_again_inside_a_stage_goes_on(
    tmp_path, undisturbed, duck, points
):
    out = tmp_path / "study"
    for point in points:
        killed(out, *point)
        assert left_over(out), "it was in the middle of something"
    assert everything(out, duck) == undisturbed
    assert left_over(out) == []
