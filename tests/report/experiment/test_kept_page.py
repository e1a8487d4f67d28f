"""The figures on docs/reference/experiments.md are what the commands there print today.

The same seeds give the same figures on every machine. OTTLA_REWRITE=1 writes the sections anew;
review the difference as code.
"""

import os
from pathlib import Path

import pytest

from cli_process import ottla

PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "experiments.md"


def rewritten(page, section):
    """The page with its section of that heading replaced."""
    heading = section.splitlines()[0]
    before, after = page.split(f"{heading}\n")
    _, following, rest = after.partition("\n## ")
    return f"{before}{section.rstrip()}\n{following}{rest}"


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("pipelining", marks=pytest.mark.slow),
        pytest.param("idempotence", marks=pytest.mark.nightly),
        pytest.param("acks", marks=pytest.mark.nightly),
    ],
)
def test_the_page_says_what_the_command_says(name, tmp_path):
    done = ottla("sim", "experiment", name, "--out", tmp_path / "section.md", within=600)
    assert done.returncode == 0, done.stdout
    section = (tmp_path / "section.md").read_text(encoding="utf-8")
    page = PAGE.read_text(encoding="utf-8")
    if os.environ.get("OTTLA_REWRITE"):
        page = rewritten(page, section)
        PAGE.write_text(page, encoding="utf-8")
    assert section.strip() in page
