"""Rules on types: each `Any` needs a reason."""

import ast
from collections.abc import Iterator

from tidy.source import Source, Violation

CORE = ("raft/", "idempotency/", "log/", "broker/")
MOST_ANY = 40
"""Lines of the core that name `Any` stay below that: the others have the name of what it stands
for there (`Payload`, `Unpacked`, `Entity`), which says once why no type can."""


def any_has_a_reason(source: Source) -> Iterator[Violation]:
    """In the core a comment beside each `Any` says why nothing better is known."""
    if source.path.startswith(CORE):
        reasons = {line for line, _ in source.comments()}
        for node in source.nodes:
            if isinstance(node, ast.Name) and node.id == "Any" and node.lineno not in reasons:
                yield source.at(node, "`Any` without a comment beside it that says why")


def any_lines(source: Source) -> int:
    """Lines of a file of the core that name `Any`, imports among them."""
    if not source.path.startswith(CORE):
        return 0
    names = [
        each.lineno for each in source.nodes if isinstance(each, ast.Name) and each.id == "Any"
    ]
    imports = [
        each.lineno
        for each in source.nodes
        if isinstance(each, ast.ImportFrom) and any(name.name == "Any" for name in each.names)
    ]
    return len({*names, *imports})
