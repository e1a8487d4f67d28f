"""One process of a blind sweep, from outside (`blind_child.py` runs inside)."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from subprocess import PIPE
from tempfile import TemporaryFile
from threading import Timer
from types import TracebackType
from typing import Self

from ottla.sim.machine import trees
from ottla.sim.sweeps.blind_child import BROKE, HUNG, Seed

_PATIENCE = 20
"""Times the limit, by the clock: for a process that does not count its own CPU seconds."""
_MODULE = "ottla.sim.sweeps.blind_child"


class Child:
    """A running child; it ends after its block, or when it is closed."""

    def __init__(self, tree: Path, settings: str, limit: float):
        self._limit, self._late = limit, False
        self._said = TemporaryFile()  # noqa: SIM115 - closed in `close`
        self._process = subprocess.Popen(  # noqa: S603 - our own code
            [sys.executable, "-P", "-m", _MODULE, settings, str(limit)],
            env=trees.surroundings(tree),
            stdin=PIPE,
            stdout=PIPE,
            stderr=self._said,
            text=True,
            start_new_session=True,  # Ctrl-C is for the parent
        )
        self.ready = bool(self._line())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        self.close()

    @property
    def ended(self) -> bool:
        """Whether it has ended."""
        return self._process.poll() is not None

    def kill(self) -> None:
        """Kill it, whatever it does. Safe from any thread."""
        self._process.kill()

    def close(self) -> None:
        """End it, and clean up."""
        self.kill()
        with suppress(BrokenPipeError):
            self._process.communicate()
        self._said.close()

    def run(self, seed: int) -> Seed:
        """The result of a seed. A seed that ends the process itself broke it."""
        assert self._process.stdin is not None, "piped"
        with suppress(BrokenPipeError):  # then it says nothing any more, which is noticed below
            self._process.stdin.write(f"{seed}\n")
            self._process.stdin.flush()
        said = self._line()
        if said:
            return Seed(*json.loads(said))
        noticed = HUNG if self._late else BROKE
        return Seed(seed, [noticed], f"its process ended: {self.last_words()}", self._limit)

    def last_words(self) -> str:
        """The last line of its error output."""
        self._process.wait()
        self._said.seek(0)
        lines = self._said.read().decode(errors="replace").strip().splitlines()
        return lines[-1].strip() if lines else f"status {self._process.returncode}"

    def _line(self) -> str:
        assert self._process.stdout is not None, "piped"
        patience = Timer(_PATIENCE * self._limit, self._lose_patience)
        patience.daemon = True
        patience.start()
        try:
            return self._process.stdout.readline()
        finally:
            patience.cancel()

    def _lose_patience(self) -> None:
        self._late = True
        self.kill()
