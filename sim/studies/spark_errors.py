"""What Spark raises, and the part of it that is for people."""

from __future__ import annotations

import re

_CAUSE = "Caused by: "
_TRACEBACK = "Traceback (most recent call last)"
_CRASHED = re.compile(r"Python worker exited unexpectedly \(crashed\)")


def spark_errors() -> tuple[type[Exception], ...]:
    """The exceptions of Spark and of the connection to its JVM."""
    from pyspark.errors import PySparkException

    try:
        from py4j.protocol import Py4JError
    except ImportError:  # a client of Spark Connect lacks it
        return (PySparkException, ConnectionError)
    return (PySparkException, Py4JError, ConnectionError)


def in_one_line(error: Exception) -> str:
    """What is wrong: the first and the last line of a stack trace."""
    if isinstance(error, ConnectionError):
        return f"its JVM, or its server, is gone: {error}"
    lines = [each for each in str(error).splitlines() if each.strip()] or [type(error).__name__]
    if any(each.startswith(_TRACEBACK) for each in lines[:2]):
        return f"{lines[-1].strip()} (in a worker's Python)"
    top = next((each[2:] for each in lines if each.startswith(": ")), lines[0])
    causes = [each.removeprefix(_CAUSE) for each in lines if each.startswith(_CAUSE)]
    return "; ".join(dict.fromkeys([top.strip(), *causes[-1:]]))


def crashed(error: Exception) -> bool:
    """Whether a worker's Python died, and its task with it."""
    return _CRASHED.search(str(error)) is not None
