"""What the package says of itself, and which Spark its users get: what the tests run with.

`ottla[spark]` took PySpark 4.3, while the pages said 4.0.5 and every test ran with that.
"""

import re
import tomllib

from packaging.requirements import Requirement

from tidy.source import repository

ROOT = repository()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
CONNECTOR = re.compile(r"<artifactId>spark-sql-kafka-0-10_2\.13</artifactId>\s*<version>([\d.]+)<")


def of_pyspark(extra):
    """What an extra asks PySpark to be."""
    (found,) = (each for each in map(Requirement, EXTRAS[extra]) if each.name == "pyspark")
    return found.specifier


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def test_it_has_a_long_description_and_links():
    assert PROJECT["readme"] == "README.md"
    assert all(each.startswith("https://") for each in PROJECT["urls"].values())


def test_users_get_the_spark_that_tests_run_with():
    (tested,) = of_pyspark("dev")
    assert tested.operator == "=="
    offered, line = of_pyspark("spark"), tested.version.rpartition(".")[0]
    assert offered.contains(tested.version)
    major, minor = map(int, line.split("."))
    assert not offered.contains(f"{major}.{minor + 1}.0")
    assert not offered.contains(f"{major}.{minor - 1}.9")


def test_pages_name_that_spark_and_no_other():
    (tested,) = of_pyspark("dev")
    for page in sorted((ROOT / "docs").rglob("*.md")):
        told = page.read_text(encoding="utf-8")
        named = re.findall(r"(?i)pyspark(?:\[connect\]==|==| )(\d+\.\d+\.\d+)", told)
        assert set(named) <= {tested.version}, page
    assert f"PySpark {tested.version}" in read("docs/how-to/read-with-spark.md")


def test_the_connector_on_the_page_is_the_one_that_is_tested():
    told = CONNECTOR.findall(read("docs/how-to/read-with-spark.md"))
    assert told == CONNECTOR.findall(read("tests/clients/spark/pom.xml"))
    (tested,) = of_pyspark("dev")
    assert told[0].rpartition(".")[0] == tested.version.rpartition(".")[0]
