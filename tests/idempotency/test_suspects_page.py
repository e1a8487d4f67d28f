"""docs/explanation/suspects.md answers all fourteen suspects, and its tests exist."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "explanation" / "suspects.md"
ROWS = re.findall(r"^\| (S\d+) \|.*$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
NAMED = re.findall(r"`(tests/idempotency/\w+\.py)::(\w+)`", PAGE.read_text(encoding="utf-8"))


def test_all_fourteen_are_answered_once():
    assert [f"S{number}" for number in range(1, 15)] == ROWS


@pytest.mark.parametrize(("path", "name"), NAMED)
def test_a_test_it_names_exists(path, name):
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_test_of_a_suspect_is_named():
    tree = ast.parse((ROOT / "tests/idempotency/test_suspects.py").read_text(encoding="utf-8"))
    tests = {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}
    assert {name for name in tests if name.startswith("test_")} <= {name for _, name in NAMED}
