"""The simulator sees a node through `Node.inspect` and `Node.watch`, never its inside.

A run that reached into the driver or a machine could change what it looks at, and kept the driver
from being rearranged. What a class of the simulator that *is* a part of a node (a mutant, a replica
whose calls are noted) calls on itself is its own.
"""

import ast
from collections.abc import Iterator

from tidy.imports import imported
from tidy.source import Source, Violation

DRIVER = "ottla.broker.driver"
INSIDE = frozenset(
    {
        *("runner", "hosted_replicas", "beats", "controller_machine"),
        *("core", "machine"),
        *("on_applied", "on_role", "on_failed"),
    }
)
"""Attributes of a node, its runner and its replicas by which one gets inside of them, or in between
them."""
_BY_NAME = frozenset({"getattr", "setattr", "delattr", "hasattr", "attrgetter"})


def through_the_view(source: Source) -> Iterator[Violation]:
    """In `sim/` no import of the driver, and none of `INSIDE` of anything but `self`."""
    if not source.path.startswith("sim/"):
        return
    for node, name in imported(source):
        if name == DRIVER or name.startswith(f"{DRIVER}."):
            yield source.at(node, f"imports {name}; ask Node.inspect()")
    for node in source.nodes:
        for name in _touched(node):
            if not INSIDE.isdisjoint(name.split(".")):
                yield source.at(node, f"goes by {name} into a node; ask Node.inspect()")


def _touched(node: ast.AST) -> Iterator[str]:
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
