"""A full output, no working directory, few descriptors: one line of error, and status 2."""

import os
import shlex
import subprocess
import sys

import pytest

from cli_process import PROGRAM

NO_ROOM = "No space left on device"


def in_a_shell(*words, before="", after="", **environment):
    """Run it within a line of the shell; what it says, in one line."""
    program = shlex.join([sys.executable, "-c", PROGRAM, *words])
    done = subprocess.run(
        ["sh", "-c", f"{before} {program} {after}"],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | environment,
    )
    assert done.returncode == 2, done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("ottla: ")
    return line


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "output", "told"),
    [
        ("sim show 1 --last 1", ">/dev/full", NO_ROOM),
        ("sim show 1 --last 1", ">&-", "standard output is closed"),
        ("--help", ">/dev/full", NO_ROOM),
        ("sim --help", ">/dev/full", NO_ROOM),
        ("--version", ">/dev/full", NO_ROOM),
        ("demo --records 300 --seconds 0.5 --out {}", ">/dev/full", NO_ROOM),
    ],
)
def test_an_output_that_takes_nothing_is_one_line(words, output, told, tmp_path):
    """What the option parser prints ended in a traceback, and so did the demo."""
    assert told in in_a_shell(*words.format(tmp_path / "out").split(), after=output)


@pytest.mark.slow
@pytest.mark.parametrize("words", ["up --data-dir x", "sim sweep --seeds 1 --jobs 2", "--help"])
def test_a_working_directory_that_was_removed_is_one_line(words, tmp_path):
    """A relative folder, and whatever starts processes, ended in a traceback."""
    gone = tmp_path / "gone"
    line = in_a_shell(*words.split(), before=f"mkdir {gone}; cd {gone}; rmdir {gone};")
    assert line.startswith("ottla: the working directory: No such file or directory; change to")


@pytest.mark.slow
@pytest.mark.parametrize("most", [9, 12, 15, 18])
def test_too_few_descriptors_are_one_line(most):
    """With 12, the event loop began, could not end, and left three tracebacks. (With 20 there are
    enough, if nothing else is open: the broker is ready, and the test waits for ever.)"""
    line = in_a_shell("up", "--port", "0", before=f"ulimit -n {most};")
    assert "raise the limit of open files (ulimit -n)" in line


@pytest.mark.slow
def test_a_completion_without_its_words_is_one_line():
    line = in_a_shell(_OTTLA_COMPLETE="complete_bash")
    assert line.endswith("COMP_WORDS and COMP_CWORD are not; unset it")
