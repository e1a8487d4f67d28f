"""What a topic may be called (Kafka's `Topic.validate`)."""

from __future__ import annotations

import re

from ottla.broker.arguments.spelling import printable

MAX_NAME_LENGTH = 249
"""Longest topic name: with a partition number it still fits a file name."""
METADATA_LOG = "__cluster_metadata"
"""Where Kafka's controllers keep what they decide: no topic that anybody may create."""
_NAME = re.compile(r"[a-zA-Z0-9._-]+")


def name_refusal(name: str) -> str:
    """Why this can be no topic's name (INVALID_TOPIC_EXCEPTION); empty when it can."""
    told = printable(name)
    if not name:
        why = "the empty string is not allowed"
    elif name in {".", ".."}:
        why = f"'{told}' is not allowed"
    elif len(name) > MAX_NAME_LENGTH:
        why = f"the length of '{told}' is longer than the max allowed length {MAX_NAME_LENGTH}"
    elif not _NAME.fullmatch(name):
        others = "one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
        why = f"'{told}' contains {others}"
    else:
        return ""
    return f"Topic name is invalid: {why}"
