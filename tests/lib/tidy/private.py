"""Tests ask for behaviour: they touch no attribute that starts with an underscore."""

import ast
from collections.abc import Iterator

from tidy.source import Source, Violation

_BY_NAME = frozenset({"getattr", "setattr", "delattr", "hasattr"})
# Named tuples publish these under an underscore, to keep clear of field names.
_PUBLIC = frozenset({"_asdict", "_field_defaults", "_fields", "_make", "_replace"})


def untouched(source: Source) -> Iterator[Violation]:
    """No `x._y` unless x is self or cls, no private import, no `getattr(x, "_y")` in tests."""
    if not source.is_test:
        return
    for node in source.nodes:
        for name in _touched(node):
            if name.startswith("_") and not name.startswith("__") and name not in _PUBLIC:
                yield source.at(node, f"a test touches {name}")


def _touched(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Attribute):
        if not (isinstance(node.value, ast.Name) and node.value.id in {"self", "cls"}):
            yield node.attr
    elif isinstance(node, ast.ImportFrom):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.Call) and len(node.args) > 1:
        function = node.func
        called = (
            function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        )
        named = node.args[1]
        if called in _BY_NAME and isinstance(named, ast.Constant) and isinstance(named.value, str):
            yield named.value
