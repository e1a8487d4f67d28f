"""How messages show values that a person wrote: as files have them."""

from __future__ import annotations

from typing import Any

from ottla.broker.arguments.spelling import shown

_LONG = 60


def as_written(value: Any) -> str:
    """A value as a person may have written it, no longer than fits in a line.

    >>> as_written(True), as_written("a"), as_written([1, False]), as_written({"sql": "SELECT 1"})
    ('true', "'a'", '[1, false]', 'a block of keys')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "a block of keys"
    if isinstance(value, list):
        if any(isinstance(each, dict) for each in value):
            return "a list of blocks"
        told = f"[{', '.join(map(as_written, value))}]"
    else:
        told = shown(value) if isinstance(value, int | str) else str(value)
    return told if len(told) <= _LONG else f"{told[: _LONG - 3]}..."


def as_toml(value: int | str | bool) -> str:
    """The value of a setting, as TOML has it.

    >>> as_toml(True), as_toml("even"), as_toml(5)
    ('true', '"even"', '5')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    return f'"{value}"' if isinstance(value, str) else str(value)
