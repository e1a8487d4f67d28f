"""Options of the JVM, if Spark is started from here."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

COLLECTOR = "-XX:+UseParallelGC"
"""Java's default collector works beside the tasks to keep pauses short, which does not matter here:
judging takes a quarter longer with it."""
_NAMED = re.compile(r"-XX:\+Use\w+GC\b")
_FILES = ("spark-defaults.conf", "spark-env.sh")
VARIABLES = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "PYSPARK_SUBMIT_ARGS")
"""Variables with options for a JVM, or for what starts it; each may name a collector."""


def options(logging: Path, settings: Mapping[str, str]) -> str:
    """For SPARK_SUBMIT_OPTS: how to log, and which collector, unless one is named elsewhere,
    because no JVM starts with two of them."""
    # As a URI it has no space, at which Spark would split it.
    said = f"-Dlog4j2.configurationFile={logging.absolute().as_uri()}"
    named = any(_NAMED.search(each) for each in (*settings.values(), *_told()))
    return said if named else f"{said} {COLLECTOR}"


def _told() -> Iterator[str]:
    """Options of a JVM from all other places."""
    for name in VARIABLES:
        yield os.environ.get(name, "")
    for folder in _folders():
        for name in _FILES:
            with suppress(OSError):
                yield (folder / name).read_text(encoding="utf-8", errors="replace")


def _folders() -> Iterable[Path]:
    """The folders in which Spark looks for its defaults."""
    if told := os.environ.get("SPARK_CONF_DIR"):
        return [Path(told)]
    if home := os.environ.get("SPARK_HOME"):
        return [Path(home) / "conf"]
    found = find_spec("pyspark")
    places = (found.submodule_search_locations or ()) if found is not None else ()
    return [Path(each) / "conf" for each in places]
