"""No command and no page of one names a file that only a checkout has.

An error of `ottla sim explain` sent the users of a wheel to a page under `docs`, which no wheel
holds. What pages of the documentation are made of, in `sim` and `idempotency`, may name others.
"""

import ast
import re

import pytest
from typer.testing import CliRunner

from ottla.commands.sim.app import app
from tidy.source import repository

ROOT = repository()
ONLY_IN_A_CHECKOUT = re.compile(r"\b(?:docs|tests|facts)/\w|\.\./\w+/|\w\.md\b")

SUFFIXES = {"Where it goes: .md Markdown, else a page with the picture."}
"""What a file of a user's own may be called."""


def texts(source):
    """Strings of a module that are no docstrings, of attributes either."""
    tree = ast.parse(source)
    unsaid = {id(each.value) for each in ast.walk(tree) if isinstance(each, ast.Expr)}
    return [
        each.value
        for each in ast.walk(tree)
        if isinstance(each, ast.Constant) and isinstance(each.value, str) and id(each) not in unsaid
    ]


@pytest.mark.slow
def test_no_command_names_a_file_that_a_wheel_lacks():
    found = [
        (path.name, text)
        for path in sorted((ROOT / "src/ottla").rglob("*.py"))
        if not any(each.is_symlink() for each in path.parents)
        for text in texts(path.read_text(encoding="utf-8"))
        if ONLY_IN_A_CHECKOUT.search(text) and text not in SUFFIXES
    ]
    assert found == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ["explain", "s07"],
        ["explain", "s07", "--act", "2", "--mutant", "M05"],
        ["explain", "0", "--set", "mutants=M06", "--set", "load_ms=1000", "--set", "records=20"],
        ["cover", "--seeds", "1"],
    ],
    ids=" ".join,
)
def test_no_page_links_to_what_is_not_beside_it(tmp_path, command):
    page = tmp_path / "page.html"
    done = CliRunner().invoke(app, [*command, "--out", str(page)])
    told = page.read_text(encoding="utf-8")
    assert not ONLY_IN_A_CHECKOUT.search(done.stdout)
    links = re.findall(r'(?:href|src)="([^"#][^"]*)"', told)
    assert [each for each in links if not each.startswith(("https://", "data:"))] == []
    named = {each[0] for each in re.finditer(r"\b(?:docs|tests|facts)/[\w./-]+", told)}
    assert named == set()
