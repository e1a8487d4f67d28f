"""Limits on size and shape: what fits a reader's head."""

import ast
from collections.abc import Iterator

from tidy.source import Source, Violation

MODULE_LINES = 300
FUNCTION_LINES = 50
POSITIONAL = 5
COLUMNS = 100

Function = ast.FunctionDef | ast.AsyncFunctionDef


def module_length(source: Source) -> Iterator[Violation]:
    """A module has at most 300 lines of code: reasons do not compete with it for room."""
    count = len(source.code)
    if count > MODULE_LINES:
        text = f"module has {count} lines of code, limit {MODULE_LINES}"
        yield Violation(source.path, len(source.lines), text)


def line_length(source: Source) -> Iterator[Violation]:
    """A line has at most 100 columns."""
    for number, line in enumerate(source.lines, 1):
        if len(line) > COLUMNS:
            text = f"line has {len(line)} columns, limit {COLUMNS}"
            yield Violation(source.path, number, text)


def function_length(source: Source) -> Iterator[Violation]:
    """A function has at most 50 lines of code from `def` to its end."""
    for node in source.nodes:
        if isinstance(node, Function) and _lines(node) > FUNCTION_LINES:
            count = len(source.code.intersection(range(node.lineno, node.lineno + _lines(node))))
            if count > FUNCTION_LINES:
                text = f"function {node.name} has {count} lines of code, limit {FUNCTION_LINES}"
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
