"""What a JVM is started with, where Spark is started from here."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

COLLECTOR = "-XX:+UseParallelGC"
"""Java's own choice works beside the tasks for the sake of short pauses, which nobody here needs:
judging takes it a quarter more time."""
_NAMED = re.compile(r"-XX:\+Use\w+GC\b")
_FILES = ("spark-defaults.conf", "spark-env.sh")
VARIABLES = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "PYSPARK_SUBMIT_ARGS")
"""What a JVM, or who starts it, takes options from; any of them may name a collector."""


def options(logging: Path, settings: Mapping[str, str]) -> str:
    """For SPARK_SUBMIT_OPTS: how to log, and which collector, unless one is named elsewhere: with
    two of them no JVM starts."""
    # As a URI it has no space, at which Spark would part it.
    said = f"-Dlog4j2.configurationFile={logging.absolute().as_uri()}"
    named = any(_NAMED.search(each) for each in (*settings.values(), *_told()))
    return said if named else f"{said} {COLLECTOR}"


def _told() -> Iterator[str]:
    """Wherever else options of a JVM may stand."""
    for name in VARIABLES:
        yield os.environ.get(name, "")
    for folder in _folders():
        for name in _FILES:
            with suppress(OSError):
                yield (folder / name).read_text(encoding="utf-8", errors="replace")


def _folders() -> Iterable[Path]:
    """Where Spark looks for its defaults."""
    if told := os.environ.get("SPARK_CONF_DIR"):
        return [Path(told)]
    if home := os.environ.get("SPARK_HOME"):
        return [Path(home) / "conf"]
    found = find_spec("pyspark")
    places = (found.submodule_search_locations or ()) if found is not None else ()
    return [Path(each) / "conf" for each in places]
