"""How the bench talks to the processes it measures: a line of JSON each way, over their pipes.

A child answers every line `{"do": name, ...arguments}` with one line; the first line it writes, on
its own, says that it is there.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Self

LIB = Path(__file__).resolve().parents[1]
NOTHING: Mapping[str, str] = MappingProxyType({})


class ChildFailedError(Exception):
    """A measured process ended, or could not do what it was asked for; its own words."""


class Child:
    """A process of this package under control of the bench."""

    def __init__(self, module: str, *arguments: str, environment: Mapping[str, str] = NOTHING):
        path = os.pathsep.join(filter(None, [str(LIB), os.environ.get("PYTHONPATH")]))
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment, "PYTHONPATH": path},
        )
        self.hello: dict[str, Any] = self._read()
        """What it said when it was ready."""

    def ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        """Have it do something; returns its answer. Raises `ChildFailedError`."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
        self._process.stdin.flush()
        return self._read()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise ChildFailedError(f"{self._process.args!r} ended with {self._process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise ChildFailedError(answer["error"])
        return answer

    def close(self) -> None:
        """End it: it stops when its input ends."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def say(**answer: Any) -> None:
    """In a child: write one line."""
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
