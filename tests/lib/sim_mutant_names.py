"""Where a source could make a set of mutants, or find one out: what only `sim/` may."""

from __future__ import annotations

import ast
from collections.abc import Iterator

NAMES = ("Mutant", "Mutants")


def misuses(source: str) -> list[int]:
    """Lines that use the name of a mutant or of their sets for anything but types and the question
    whether one is in a set (`Mutant.X in mutants`)."""
    tree = ast.parse(source)
    fine = {id(each) for node in ast.walk(tree) for each in _allowed(node)}
    found = (node for node in ast.walk(tree) if _names(node) and id(node) not in fine)
    return sorted(getattr(node, "lineno", 0) for node in found)


def _names(node: ast.AST) -> bool:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.Constant(value=name):
            return name in NAMES
        case ast.alias(name=name, asname=other):
            return name in NAMES and other not in {None, name}
    return False


def _allowed(node: ast.AST) -> Iterator[ast.AST]:
    """What is below a node that may use the names."""
    match node:
        case ast.Compare(
            left=ast.Attribute(value=ast.Name() as name), ops=[ast.In() | ast.NotIn()]
        ):
            yield name
        case ast.AnnAssign(
            target=ast.Name(id="Mutants"), annotation=kind, value=ast.Subscript() as value
        ):
            yield from (node.target, *ast.walk(kind), *ast.walk(value))
        case ast.AnnAssign(annotation=kind) | ast.arg(annotation=ast.expr() as kind):
            yield from ast.walk(kind)
        case ast.FunctionDef(returns=ast.expr() as kind):
            yield from ast.walk(kind)
