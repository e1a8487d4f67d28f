"""The simulator's tutorial, followed by a stranger who types exactly what it says.

One seed is one history, so what is printed must be what the page shows, but for how fast it went
and how large a page is. A command that finds something ends with status 1; those of which the page
shows no output print more than a reader wants to see. With OTTLA_REWRITE=1 the page is given what
was printed; the words around it are for a person to compare.
"""

import os
import re

import pytest

import docs_programs
from docs_programs import blocks, commands

PAGE = "tutorial/find-a-bug.md"


def shape(text):
    """The words of a text, without what differs from machine to machine."""
    return re.sub(r"[\d.,]+ (seeds/s|bytes)", r"# \1", text).split()


@pytest.mark.slow
def test_a_stranger_can_follow_it(tmp_path):
    typed = 0
    for block in blocks(PAGE):
        if block.name:
            (tmp_path / block.name).write_text(block.text, encoding="utf-8")
            continue
        for command in commands(block):
            ran = docs_programs.run(command.line, tmp_path, 120)
            told = f"{command.line}\n{ran.stdout}\n{ran.stderr}"
            assert ran.returncode in {0, 1}, told
            assert "ottla: " not in ran.stderr, told  # a slow machine may see progress there
            if command.prints and os.environ.get("OTTLA_REWRITE"):
                before, now = "\n".join(command.prints), ran.stdout.rstrip("\n")
                path = docs_programs.ROOT / "docs" / PAGE
                page = path.read_text(encoding="utf-8").replace(before, now)
                path.write_text(page, encoding="utf-8")
            elif command.prints:
                assert shape(ran.stdout) == shape("\n".join(command.prints)), told
            typed += 1
    assert typed == 6
    shown = docs_programs.run("ottla sim show small.tape --kind ok", tmp_path, 120)
    assert shown.stdout.count("\n") == 1
    page = (tmp_path / "small.html").read_text(encoding="utf-8")
    assert "first bad event" in page
    assert "ack before commit" in page
