"""Spark's JVM gets one collector: ours, unless whoever runs it names one, wherever that may be."""

from pathlib import Path

import pytest

from ottla.sim.studies.jvm import COLLECTOR, VARIABLES, options

LOGGING = Path("/quiet.properties")
OTHER = "-XX:+UseG1GC"


@pytest.fixture(autouse=True)
def nothing_told(monkeypatch, tmp_path):
    for name in (*VARIABLES, "SPARK_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))


def test_where_nobody_names_one_it_is_the_one_for_throughput(tmp_path):
    (tmp_path / "spark-defaults.conf").write_text("spark.driver.memory 2g\n")
    settings = {"spark.driver.extraJavaOptions": "-Xss16m -Xlog:gc -XX:GCTimeRatio=9"}
    told = options(LOGGING, settings)
    assert told == f"-Dlog4j2.configurationFile=file:///quiet.properties {COLLECTOR}"


def test_where_the_package_lies_below_a_space_the_option_stays_one_word():
    """Spark parts these options at spaces; half a path was no option, and no JVM began."""
    logging = Path("/Program Files/100%/quiet.properties")
    told = "-Dlog4j2.configurationFile=file:///Program%20Files/100%25/quiet.properties"
    assert options(logging, {}).split() == [told, COLLECTOR]


def test_a_place_that_is_told_from_here_is_told_whole(monkeypatch, tmp_path):
    """A JVM may be started elsewhere."""
    monkeypatch.chdir(tmp_path)
    place = (tmp_path / "quiet.properties").as_uri()
    assert options(Path("quiet.properties"), {}).split()[0].endswith(f"={place}")


@pytest.mark.parametrize("name", VARIABLES)
def test_one_that_the_environment_names_is_the_only_one(name, monkeypatch):
    monkeypatch.setenv(name, f"-Xmx1g {OTHER}")
    assert COLLECTOR not in options(LOGGING, {})


def test_one_that_a_setting_names_is_the_only_one():
    assert COLLECTOR not in options(LOGGING, {"spark.driver.extraJavaOptions": f"-Xrs {OTHER}"})


@pytest.mark.parametrize("name", ["spark-defaults.conf", "spark-env.sh"])
@pytest.mark.parametrize("variable", ["SPARK_CONF_DIR", "SPARK_HOME"])
def test_one_that_a_file_of_spark_names_is_the_only_one(variable, name, monkeypatch, tmp_path):
    """With two a JVM says *Multiple garbage collectors selected*, and no session begins."""
    monkeypatch.delenv("SPARK_CONF_DIR")
    home = tmp_path / "spark"
    conf = home / "conf"
    conf.mkdir(parents=True)
    (conf / name).write_text(f"spark.driver.extraJavaOptions {OTHER}\n")
    monkeypatch.setenv(variable, str(home if variable == "SPARK_HOME" else conf))
    assert COLLECTOR not in options(LOGGING, {})
