"""Limits on size and shape: what fits a reader's head."""

import ast
from collections.abc import Iterator

from tidy.source import Source, Violation

MODULE_LINES = 400
FUNCTION_LINES = 50
POSITIONAL = 5
COLUMNS = 100

Function = ast.FunctionDef | ast.AsyncFunctionDef


def module_length(source: Source) -> Iterator[Violation]:
    """A module has at most 400 lines."""
    count = len(source.lines)
    if count > MODULE_LINES:
        yield Violation(source.path, count, f"module has {count} lines, limit {MODULE_LINES}")


def line_length(source: Source) -> Iterator[Violation]:
    """A line has at most 100 columns."""
    for number, line in enumerate(source.lines, 1):
        if len(line) > COLUMNS:
            text = f"line has {len(line)} columns, limit {COLUMNS}"
            yield Violation(source.path, number, text)


def function_length(source: Source) -> Iterator[Violation]:
    """A function has at most 50 lines from `def` to its end, docstring not counted."""
    for node in source.nodes:
        if isinstance(node, Function):
            count = _lines(node) - _docstring_lines(node)
            if count > FUNCTION_LINES:
                text = f"function {node.name} has {count} lines, limit {FUNCTION_LINES}"
                yield source.at(node, text)


def positional_parameters(source: Source) -> Iterator[Violation]:
    """A function takes at most 5 positional parameters; self, cls and keyword-only do not count."""
    methods = {
        id(statement)
        for node in source.nodes
        if isinstance(node, ast.ClassDef)
        for statement in node.body
        if isinstance(statement, Function) and not _is_static(statement)
    }
    for node in source.nodes:
        if isinstance(node, Function):
            count = len(node.args.posonlyargs) + len(node.args.args) - (id(node) in methods)
            if count > POSITIONAL:
                text = f"function {node.name} has {count} positional parameters, limit {POSITIONAL}"
                yield source.at(node, text)


def _is_static(function: Function) -> bool:
    names = (d.id for d in function.decorator_list if isinstance(d, ast.Name))
    return "staticmethod" in names


def _lines(node: Function | ast.stmt) -> int:
    assert node.end_lineno is not None
    return node.end_lineno - node.lineno + 1


def _docstring_lines(function: Function) -> int:
    documented = ast.get_docstring(function, clean=False) is not None
    return _lines(function.body[0]) if documented else 0
