"""The tutorial, followed by a stranger who types exactly what it says.

Commands and files are taken from the document, in its order. Two things differ: the installation is
this environment's, and port 9092 becomes a free one. What is printed must look like what the
document shows, numbers apart; where numbers matter the programs assert them themselves.
"""

import re
import signal
import socket
import subprocess
import sys

import pytest

import docs_programs
from docs_programs import Block, Command, blocks, commands

PAGE = "tutorial/first-cluster.md"
INSTALLATION = ["make install", ". .venv/bin/activate"]

pytestmark = pytest.mark.clients


def free_port() -> int:
    """A port with two free ones behind it."""
    for first in range(21_000, 60_000, 97):
        try:
            for port in range(first, first + 3):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port))
        except OSError:
            continue
        return first
    raise AssertionError("no three free ports")


def shape(text: str) -> str:
    """What is printed, without the numbers that differ from run to run."""
    return re.sub(r"\d+(\.\d+)?s?", "N", text.strip())


class Stranger:
    """Somebody at an empty folder, who reads on."""

    def __init__(self, folder):
        self.folder = folder
        self.port = free_port()
        self.broker: subprocess.Popen[str] | None = None
        self.typed: list[str] = []

    def read(self, block: Block) -> None:
        """Save a file, type a command, or change a line as told."""
        if block.language == "console":
            for command in commands(block):
                self.type(command)
        elif block.name:
            self.save(block.name, block.text)
        else:
            self.change(block.text)

    def save(self, name: str, text: str) -> None:
        text = text.replace("9092", str(self.port))
        (self.folder / name).write_text(text, encoding="utf-8")

    def change(self, line: str) -> None:
        """A block without a name: the line of the shop's test that it is to replace."""
        name = line.split(" = ", maxsplit=1)[0]
        test = self.folder / "test_shop.py"
        changed, count = re.subn(
            rf"^{name} = .*\n", line, test.read_text(encoding="utf-8"), flags=re.MULTILINE
        )
        assert count == 1
        test.write_text(changed, encoding="utf-8")

    def type(self, command: Command) -> None:
        self.typed.append(command.line)
        if command.line in INSTALLATION:
            return
        if command.line.startswith("ottla up"):
            self.start(command)
            return
        ran = docs_programs.run(command.line, self.folder)
        told = f"{command.line}\n{ran.stdout}\n{ran.stderr}"
        if command.line.startswith("pytest"):
            failed = any(line.startswith("E ") for line in command.prints)
            assert ran.returncode == (1 if failed else 0), told
            for line in command.prints:
                assert shape(line) in shape(ran.stdout), told
        else:
            assert ran.returncode == 0, told
            assert shape(ran.stdout) == shape("\n".join(command.prints)), told

    def start(self, command: Command) -> None:
        line = command.line.replace("9092", str(self.port)).split()
        self.broker = subprocess.Popen(
            [sys.executable, "-m", *line],
            cwd=self.folder,
            env=docs_programs.environment(),
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.broker.stdout is not None
        (ready,) = command.prints
        assert self.broker.stdout.readline().strip() == ready.replace("9092", str(self.port))


@pytest.fixture
def stranger(tmp_path):
    stranger = Stranger(tmp_path)
    yield stranger
    if stranger.broker is not None and stranger.broker.poll() is None:
        stranger.broker.kill()
        stranger.broker.wait()


@pytest.mark.slow(seconds=20)
def test_a_stranger_can_follow_it(stranger):
    for block in blocks(PAGE):
        stranger.read(block)
    assert [line for line in stranger.typed if line in INSTALLATION] == INSTALLATION
    assert len(stranger.typed) > len(INSTALLATION) + 4
    stranger.broker.send_signal(signal.SIGINT)
    assert stranger.broker.wait(timeout=20) == 0
