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


def follow(page: str, folder: Path) -> list[str]:
    """Type in `folder` what `docs/<page>` says, and compare what is printed, but for how fast it
    went and how large a page is. Returns the commands.

    A command that finds something ends with status 1; those of which the page shows no output print
    more than a reader wants to see. With OTTLA_REWRITE=1 the page is given what was printed; the
    words around it are for a person to compare.
    """
    typed = []
    for block in blocks(page):
        if block.name:
            (folder / block.name).write_text(block.text, encoding="utf-8")
            continue
        for command in commands(block) if block.language == "console" else ():
            ran = run(command.line, folder, 120)
            told = f"{command.line}\n{ran.stdout}\n{ran.stderr}"
            assert ran.returncode in {0, 1}, told
            assert "ottla: " not in ran.stderr, told  # a slow machine may see progress there
            shown = "\n".join(command.prints)
            if shown and os.environ.get("OTTLA_REWRITE"):
                _rewrite(page, f"$ {command.line}\n{shown}", f"$ {command.line}\n{ran.stdout}")
            elif shown:
                assert _shape(ran.stdout) == _shape(shown), told
            typed.append(command.line)
    return typed


def _rewrite(page: str, before: str, now: str) -> None:
    path = ROOT / "docs" / page
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(before, now.rstrip("\n")), encoding="utf-8")


def _shape(text: str) -> list[str]:
    """The words of a text, without what differs from machine to machine."""
    return re.sub(r"[\d.,]+ (seeds/s|bytes)", r"# \1", text).split()
