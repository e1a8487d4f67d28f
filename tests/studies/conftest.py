"""Engines for the tests of studies: each is opened once in a test run, Spark if there is any."""

import pytest

from ottla.sim.studies.engine import open_engine
from studies_spark import local_spark


@pytest.fixture(scope="session")
def duck():
    """DuckDB and one process."""
    opened = open_engine("duckdb", jobs=1)
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """Spark with two cores; its session is `spark.session`."""
    opened = local_spark(tmp_path_factory.mktemp("warehouse"))
    yield opened
    opened.close()


@pytest.fixture(scope="session", params=["duck", pytest.param("spark", marks=pytest.mark.slow)])
def engine(request):
    """Each of them; tables are those of the test that makes them."""
    return request.getfixturevalue(request.param)
