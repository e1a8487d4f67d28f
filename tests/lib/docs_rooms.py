"""The page of the rooms inside `broker/` and `sim/`, from the tree and from the import contracts.

The `__init__` of a room says what it is. `pyproject.toml` says which rooms may import which. The
sources show which do. The page has all three, and a test keeps them true.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MOST_FLAT = {"broker": 6, "sim": 3}
"""By package: how many modules may lie in no room."""
LONGEST_INIT = 10
"""Lines in which a room says what it is and what it is not."""

_HEAD = """\
# Rooms

Written from the tree and from `pyproject.toml` by `tests/tidy/test_generated_pages.py`; do not
edit. A room imports rooms below it and never one above or beside it: `make imports` fails
otherwise.
"""


def layers(package: str) -> list[list[str]]:
    """Rooms and flat modules from the top to the ground, as the import contract has them."""
    told = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = (
        each
        for each in told["tool"]["importlinter"]["contracts"]
        if each.get("containers") == [f"ottla.{package}"]
    )
    return [[name.strip() for name in layer.split("|")] for layer in contract["layers"]]


def rooms(package: str) -> list[str]:
    """The packages below it."""
    return sorted(path.parent.name for path in (ROOT / package).glob("*/__init__.py"))


def flat(package: str) -> list[str]:
    """The modules that lie in no room."""
    return sorted(path.stem for path in (ROOT / package).glob("*.py") if path.stem != "__init__")


def said_by(package: str, room: str) -> str:
    """The docstring of a room."""
    text = (ROOT / package / room / "__init__.py").read_text(encoding="utf-8")
    return ast.get_docstring(ast.parse(text)) or ""


def imported_by(package: str, room: str) -> set[str]:
    """Rooms and flat modules of its package that modules of a room import."""
    paths = (ROOT / package / room).rglob("*.py")
    return {name for path in paths for name in _imports(path, package)} - {room}


def _imports(path: Path, package: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            parts = node.module.split(".")
            if parts[:2] == ["ottla", package]:
                yield parts[2] if len(parts) > 2 else node.names[0].name


def rooms_page() -> str:
    """The whole page."""
    return _HEAD + "".join(map(_section, MOST_FLAT))


def _section(package: str) -> str:
    lines = ["", f"## {package}", "", *_picture(package), "", *_table(package), ""]
    return "\n".join(lines)


def _picture(package: str) -> Iterator[str]:
    drawn = layers(package)
    yield from ("```mermaid", "flowchart TB")
    for number, layer in enumerate(drawn):
        yield f'    layer{number}["{", ".join(layer)}"]'
    for number in range(len(drawn) - 1):
        yield f"    layer{number} --> layer{number + 1}"
    yield "```"


def _table(package: str) -> Iterator[str]:
    yield "| room | what it is | imports |"
    yield "|---|---|---|"
    there = rooms(package)
    for room in (name for layer in layers(package) for name in layer if name in there):
        said = " ".join(said_by(package, room).split("\n\n")[0].split())
        imported = ", ".join(sorted(imported_by(package, room)))
        yield f"| `{package}/{room}/` | {said} | {imported} |"
