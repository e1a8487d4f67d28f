"""What Spark raises, and what of it is for people."""

from __future__ import annotations

import re

_CAUSE = "Caused by: "
_TRACEBACK = "Traceback (most recent call last)"
_CRASHED = re.compile(r"Python worker exited unexpectedly \(crashed\)")


def spark_errors() -> tuple[type[Exception], ...]:
    """What Spark and the way to its JVM raise."""
    from pyspark.errors import PySparkException

    try:
        from py4j.protocol import Py4JError
    except ImportError:  # a client of Spark Connect has none
        return (PySparkException, ConnectionError)
    return (PySparkException, Py4JError, ConnectionError)


def in_one_line(error: Exception) -> str:
    """What is wrong: of a stack trace what is on top, and what is at the bottom of it."""
    if isinstance(error, ConnectionError):
        return f"its JVM, or its server, is gone: {error}"
    lines = [each for each in str(error).splitlines() if each.strip()] or [type(error).__name__]
    if any(each.startswith(_TRACEBACK) for each in lines[:2]):
        return f"{lines[-1].strip()} (in a worker's Python)"
    top = next((each[2:] for each in lines if each.startswith(": ")), lines[0])
    causes = [each.removeprefix(_CAUSE) for each in lines if each.startswith(_CAUSE)]
    return "; ".join(dict.fromkeys([top.strip(), *causes[-1:]]))


def crashed(error: Exception) -> bool:
    """Whether a worker's Python died, and with it the task that it was at."""
    return _CRASHED.search(str(error)) is not None
