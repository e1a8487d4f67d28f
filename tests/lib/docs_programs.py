"""The programs in a document: its fenced blocks, in order, ready to be run.

A fence ```` ```python name.py ```` is the file `name.py`; without a name it is a program, or a part
of one, that stands for itself. In ```` ```console ```` a line behind `$ ` is a command, and the
lines up to the next command are what it prints.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_BLOCK = re.compile(r"^```(\w+)[ ]*(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """One fenced block."""

    language: str
    name: str
    text: str


@dataclass
class Command:
    """A line of a console, and what the document says it prints."""

    line: str
    prints: list[str] = field(default_factory=list)


def blocks(document: str) -> list[Block]:
    """The fenced blocks of `docs/<document>`."""
    text = (ROOT / "docs" / document).read_text(encoding="utf-8")
    return [Block(*found) for found in _BLOCK.findall(text)]


def commands(block: Block) -> list[Command]:
    """The commands of a console block."""
    found: list[Command] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            found.append(Command(line[2:]))
        else:
            found[-1].prints.append(line)
    return found


def environment() -> dict[str, str]:
    """This one, with the commands of the interpreter that runs the tests in front."""
    bin_folder = str(Path(sys.executable).parent)
    return {**os.environ, "PATH": os.pathsep.join((bin_folder, os.environ["PATH"]))}


def run(line: str, folder: Path, seconds: float = 300) -> subprocess.CompletedProcess[str]:
    """Run a command in `folder`, as a shell would; it may take so many seconds."""
    name, *arguments = line.split()
    program = [sys.executable] if name == "python" else [sys.executable, "-m", name]
    return subprocess.run(
        [*program, *arguments],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
