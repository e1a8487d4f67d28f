"""Pages of the documentation that are written from the code, as text.

Settings come from the source of `broker/config.py`, because the words after a field are no value
that a program could ask for; roles and progress come from their tables.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from enum import Enum
from pathlib import Path

from ottla.broker.config import ClusterConfig, FlushPolicy
from ottla.raft.describe import progress_diagram, role_diagram
from ottla.raft.progress import PROGRESS
from ottla.raft.roles import TRANSITIONS

ROOT = Path(__file__).resolve().parents[2]
CONFIG = ROOT / "broker" / "config.py"

_SETTINGS_HEAD = """\
# Settings of a cluster

Written from `broker/config.py` by `tests/tidy/test_generated_pages.py`; do not edit. Every field is
a keyword of `ottla.Cluster`: `Cluster(nodes=3, election_timeout_ms=100, heartbeat_ms=20)`. Names in
`_ms` are milliseconds, in `_bytes` bytes. What makes no sense raises `ConfigError`.

| setting | default | meaning |
|---|---|---|
"""
_FLUSH_HEAD = """
## Flush policies

| `FlushPolicy` | when the log is synced |
|---|---|
"""
_ROLES_HEAD = """\
# Raft: roles of a member, progress of a follower

Written from the tables in `raft/roles.py` and `raft/progress.py` by
`tests/tidy/test_generated_pages.py`; do not edit. A role changes through one of these rows or not
at all.

## Roles

```mermaid
"""
_ROLES_ROWS = """```

| in role | when | becomes | term | why | source |
|---|---|---|---|---|---|
"""
_PROGRESS_HEAD = """
## Progress: how a leader sends to one follower

```mermaid
"""
_PROGRESS_ROWS = """```

| in state | when | becomes | why |
|---|---|---|---|
"""


def settings_page() -> str:
    """`docs/reference/settings.md`."""
    said = said_of("ClusterConfig")
    defaults = ClusterConfig()
    rows = [f"| `{name}` | {_value(getattr(defaults, name))} | {said[name]} |" for name in said]
    policies = said_of("FlushPolicy")
    flush = [f"| `{name}` (`{FlushPolicy[name].value}`) | {policies[name]} |" for name in policies]
    return _SETTINGS_HEAD + _lines(rows) + _FLUSH_HEAD + _lines(flush)


def roles_page() -> str:
    """`docs/reference/raft-roles.md`."""
    roles = [
        f"| {row.source.value} | {row.trigger.value} | {row.target.value} | {row.term.value} "
        f"| {row.reason} | {row.origin} |"
        for row in TRANSITIONS
    ]
    progress = [
        f"| {row.source.value} | {row.event.value} | {row.target.value} | {row.reason} |"
        for row in PROGRESS
    ]
    return "".join(
        (
            _ROLES_HEAD,
            role_diagram(),
            _ROLES_ROWS,
            _lines(roles),
            _PROGRESS_HEAD,
            progress_diagram(),
            _PROGRESS_ROWS,
            _lines(progress),
        )
    )


def said_of(name: str) -> dict[str, str]:
    """The words after each field of a class in `broker/config.py`; empty where there are none."""
    tree = ast.parse(CONFIG.read_text(encoding="utf-8"))
    (found,) = (n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == name)
    return dict(_fields(found.body))


def _fields(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    for statement, after in zip(body, [*body[1:], ast.Pass()], strict=True):
        if isinstance(statement, ast.AnnAssign | ast.Assign):
            target = statement.target if isinstance(statement, ast.AnnAssign) else None
            named = target or statement.targets[0]  # type: ignore[union-attr]
            assert isinstance(named, ast.Name)
            yield named.id, _words(after)


def _words(statement: ast.stmt) -> str:
    """A string on its own, on one line."""
    value = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        return " ".join(value.value.split())
    return ""


def _value(default: object) -> str:
    if isinstance(default, Enum):
        return f"`{type(default).__name__}.{default.name}`"
    if isinstance(default, int) and not isinstance(default, bool):
        return f"{default:_}"
    return f"`{default!r}`"


def _lines(rows: list[str]) -> str:
    return "\n".join(rows) + "\n"
