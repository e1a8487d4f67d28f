"""Studies that die at one point, as by signal 9, each in a process of its own.

    python -m studies_killed OUT POINT

| point | dies |
|---|---|
| stage STAGE DONE | when a stage has got so far: between two folders |
| asked STAGE METHOD N | in a stage, when that method of the engine is called for the Nth time |
| half FOLDER | in the middle of a write: the system kills it when a file exceeds 500 bytes |
| unmarked FOLDER | when its data is written, and nothing says that it is whole |
| unnamed FOLDER | when it is whole, under the name of what is being made |

FOLDER is the end of a path: gold/losses. How much of a half file exists is random, because an
engine may write several files, in threads. An audit hook sees what Python does to files, so no code
of Ottla is replaced.
"""

from __future__ import annotations

import os
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from ottla.sim.studies.engine import Engine, open_engine
from ottla.sim.studies.lake import Lake
from ottla.sim.studies.pipeline import Pipeline, Progress
from ottla.sim.studies.plan import plan_of
from ottla.sim.studies.study import parse
from studies_tiny import BATCH_ROWS, SEEDS, TINY, WAVE

HALF = 500
"""Bytes of half a file: those that are asked for have more; the bill of a study and what marks a
folder as whole have less, for another thread may write these meanwhile."""
LEFT = re.compile(r"_(making|running|scratch)-")
"""What nobody may find when a study is over."""
_EVENTS = {"half": "os.mkdir", "unmarked": "open", "unnamed": "os.rename"}


def killed(out: Path, *point: object) -> None:
    """Run the study into this folder, in a process that dies at the point."""
    died = _run(out, *point)
    expected = signal.SIGXFSZ if point[0] == "half" else signal.SIGKILL
    assert died.returncode == -expected, died.stderr
    if point[0] == "half":
        (file,) = out.rglob("_making-*/*")
        assert file.stat().st_size <= HALF, died.stderr


def left_over(out: Path) -> list[str]:
    """Names, below the folder of a study, of what should not last."""
    return sorted(each.name for each in out.rglob("*") if LEFT.match(each.name))


def _run(out: Path, *point: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "studies_killed", str(out), *map(str, point)]
    environment = {
        "PYTHONPATH": os.pathsep.join(
            [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
        ),
        # What a module is compiled to is longer than half a file, too: on a fresh checkout that was
        # what the process died of.
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    return subprocess.run(
        command,
        env={**os.environ, **environment},
        check=False,
        capture_output=True,
        text=True,
    )


# --- in the process that dies ---------------------------------------------------------------------


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _go_on(_: Progress) -> None:
    pass


def _at_stage(stage: str, done: int) -> Callable[[Progress], None]:
    def told(progress: Progress) -> None:
        if progress.stage == stage and progress.done >= done:
            _die()

    return told


def _when_asked(engine: Engine, stage: str, method: str, number: int) -> Callable[[Progress], None]:
    calls, asked = count(1), getattr(engine, method)
    now = [""]

    def counted(*given: Any) -> Any:
        if now[0] == stage and next(calls) == number:
            _die()
        return asked(*given)

    def told(progress: Progress) -> None:
        now[0] = progress.stage

    setattr(engine, method, counted)
    return told


def _at_folder(kind: str, folder: str) -> None:
    parent, _, name = folder.rpartition("/")
    making = re.compile(
        rf".*/{parent}/_making-{name}-\d+-\d+" + ("/_SUCCESS" if kind == "unmarked" else "")
    )
    wanted = _EVENTS[kind]
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # Python ignores it

    def heard(event: str, given: tuple[Any, ...]) -> None:
        if event != wanted or not isinstance(given[0], str | os.PathLike):
            return
        if making.fullmatch(os.fspath(given[0])) is None:
            return
        if kind != "half":
            _die()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (HALF, HALF))

    sys.addaudithook(heard)


def _main(out: str, kind: str, *point: str) -> None:
    lake = Lake(Path(out), plan_of(parse(TINY), SEEDS, 0, wave=WAVE, batch_rows=BATCH_ROWS))
    opened = open_engine("duckdb", jobs=1, scratch=Path(out))
    told: Callable[[Progress], None] = _go_on
    if kind == "stage":
        told = _at_stage(point[0], int(point[1]))
    elif kind == "asked":
        told = _when_asked(opened, point[0], point[1], int(point[2]))
    else:
        _at_folder(kind, point[0])
    Pipeline(lake, opened, told).run()
    opened.close()


if __name__ == "__main__":
    _main(*sys.argv[1:])
