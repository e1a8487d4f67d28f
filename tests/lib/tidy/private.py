"""Tests ask for behaviour: they touch no attribute that starts with an underscore."""

import ast
from collections.abc import Iterator

from tidy.attributes import touched
from tidy.source import Source, Violation

# Named tuples publish these under an underscore, to keep clear of field names.
_PUBLIC = frozenset({"_asdict", "_field_defaults", "_fields", "_make", "_replace"})


def untouched(source: Source) -> Iterator[Violation]:
    """No `x._y` unless x is self or cls, no private import, no `getattr(x, "_y")` in tests."""
    if not source.is_test:
        return
    for node in source.nodes:
        taken = (each.name for each in node.names) if isinstance(node, ast.ImportFrom) else ()
        for name in (*touched(node), *taken):
            if name.startswith("_") and not name.startswith("__") and name not in _PUBLIC:
                yield source.at(node, f"a test touches {name}")
