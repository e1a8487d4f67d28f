"""The tables of Raft as diagrams, for the pages that are written from them."""

from __future__ import annotations

from collections.abc import Iterable

from ottla.raft.progress import PROGRESS
from ottla.raft.roles import TRANSITIONS


def role_diagram() -> str:
    """The table of roles as a Mermaid state diagram."""
    return _diagram((row.source.value, row.trigger.value, row.target.value) for row in TRANSITIONS)


def progress_diagram() -> str:
    """The table of progress as a Mermaid state diagram."""
    return _diagram((row.source.value, row.event.value, row.target.value) for row in PROGRESS)


def _diagram(rows: Iterable[tuple[str, str, str]]) -> str:
    """One arrow per pair of states, labelled with everything that leads along it."""
    arrows: dict[tuple[str, str], list[str]] = {}
    for source, label, target in rows:
        arrows.setdefault((source.replace("-", "_"), target.replace("-", "_")), []).append(label)
    lines = ["stateDiagram-v2"]
    lines.extend(f"    {a} --> {b}: {', '.join(labels)}" for (a, b), labels in arrows.items())
    return "\n".join(lines) + "\n"
