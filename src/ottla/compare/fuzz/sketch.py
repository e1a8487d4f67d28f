"""Sketches: a case as its file says it, before it is read. It is drawn, made smaller and written.

A sketch is what `tomllib` would make of the file. So whatever was drawn is a case, and a case that
was written is read as the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, TypeAlias

from ottla.compare.case import SCHEMA, TOPIC, Case
from ottla.compare.loading import read_case
from ottla.compare.tables import Table

Sketch: TypeAlias = dict[str, Any]
Steps: TypeAlias = list[dict[str, Any]]

SOURCE = "ottla compare --fuzz"
"""What a drawn case names as its source."""
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_DELETE = "\x7f"
"""A control character that JSON writes as it is, and TOML does not allow."""


def sketch_of(title: str, topics: Mapping[str, Any], absent: list[str], steps: Steps) -> Sketch:
    """A sketch with its head."""
    return {
        "schema": SCHEMA,
        "title": title,
        "source": [SOURCE],
        "topics": dict(topics),
        "absent": absent,
        "steps": steps,
    }


def case_of(sketch: Sketch, name: str, *, build: bool = False) -> Case:
    """The case of a sketch; `build` as in `read_case`. Raises `CaseError`."""
    return read_case(Table(f"{name}.toml", "", sketch), name, build=build)


def without_defaults(sketch: Sketch) -> Sketch:
    """The same case without keys that say what a case has anyway."""
    defaults: Sketch = {"topics": {TOPIC: {}}, "absent": []}
    return {key: value for key, value in sketch.items() if defaults.get(key, ...) != value}


def text_of(sketch: Sketch) -> str:
    """The file of a sketch."""
    lines = [f"{key} = {_value(value)}" for key, value in sketch.items() if key != "steps"]
    for step in sketch["steps"]:
        lines += ["", "[[steps]]", *(f"{key} = {_value(value)}" for key, value in step.items())]
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace(_DELETE, "\\u007f")
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, Mapping):
        inside = ", ".join(f"{_key(key)} = {_value(each)}" for key, each in value.items())
        return f"{{ {inside} }}" if inside else "{}"
    return str(value)


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _value(key)
