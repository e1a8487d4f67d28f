"""Which functions of the broker a run enters.

A function that no seed enters is judged by nobody, whatever the checkers are. `functions()` lists
all that the sources of `PACKAGES` define. `entered()` says which of them ran within a block, by
`sys.settrace`: that makes a run about twice as slow, so it is only done when it is asked for. Code
that runs when a module is imported does not count.

Left out are functions with no code to enter: those of protocols, and those that only raise
`NotImplementedError`. So are lambdas and comprehensions.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from types import CodeType, FrameType
from typing import NamedTuple

PACKAGES = ("raft", "idempotency", "log", "broker")


class Function(NamedTuple):
    """One function of the sources."""

    file: str
    """Such as raft/core.py."""
    name: str
    """With the classes and functions that it lies in, such as `RaftCore.step`."""


@cache
def functions() -> dict[Function, tuple[str, int]]:
    """All functions of `PACKAGES`, in the order of the sources, each with its file and line as
    Python knows them."""
    found: dict[Function, tuple[str, int]] = {}
    for package in PACKAGES:
        root = Path(import_module(f"ottla.{package}").__path__[0])
        for path in sorted(root.rglob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            file = f"{package}/{path.relative_to(root).as_posix()}"
            for name, node in _defined(tree, ""):
                begins = min(node.lineno, *(each.lineno for each in node.decorator_list), 1 << 30)
                found[Function(file, name)] = str(path), begins
    return found


def _defined(
    tree: ast.AST, within: str
) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if not _empty(node):
                yield within + node.name, node
            yield from _defined(node, f"{within}{node.name}.")
        elif isinstance(node, ast.ClassDef):
            yield from _defined(node, f"{within}{node.name}.")
        else:
            yield from _defined(node, within)


def _empty(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether it has no code: nothing but words, or a refusal."""
    return all(
        (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))
        or (isinstance(each, ast.Raise) and "NotImplementedError" in ast.unparse(each))
        for each in node.body
    )


@contextmanager
def entered() -> Iterator[dict[Function, None]]:
    """Watch which functions this thread enters in the block; the dictionary has them, in the order
    of the sources, when the block is over."""
    seen: dict[int, CodeType] = {}
    within: dict[Function, None] = {}

    def call(frame: FrameType, _event: str, _argument: object) -> None:
        code = frame.f_code
        seen[id(code)] = code  # kept, so that no other code gets its identity

    before = sys.gettrace()
    sys.settrace(call)
    try:
        yield within
    finally:
        sys.settrace(before)
        places = {(code.co_filename, code.co_firstlineno) for code in seen.values()}
        within.update({each: None for each, place in functions().items() if place in places})
