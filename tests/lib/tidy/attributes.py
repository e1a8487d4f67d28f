"""The attributes of other objects that a piece of code uses, for rules on private parts."""

import ast
from collections.abc import Iterator

_BY_NAME = frozenset({"getattr", "setattr", "delattr", "hasattr", "attrgetter"})


def touched(node: ast.AST) -> Iterator[str]:
    """The attributes that this node itself takes of anything but `self` and `cls`, by a dot or by
    a name in a text."""
    if isinstance(node, ast.Attribute):
        if not (isinstance(node.value, ast.Name) and node.value.id in {"self", "cls"}):
            yield node.attr
    elif isinstance(node, ast.Call):
        function = node.func
        called = (
            function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        )
        if called in _BY_NAME:
            for each in node.args:
                if isinstance(each, ast.Constant) and isinstance(each.value, str):
                    yield each.value
