"""Which names a topic may have (Kafka's `Topic.validate`)."""

from __future__ import annotations

import re

from ottla.broker.arguments.spelling import printable

MAX_NAME_LENGTH = 249
"""Longest topic name: with a partition number it must fit into a file name."""
METADATA_LOG = "__cluster_metadata"
"""The log of Kafka's controllers: nobody may create a topic of this name."""
_NAME = re.compile(r"[a-zA-Z0-9._-]+")


def name_refusal(name: str) -> str:
    """Why a topic cannot have this name (INVALID_TOPIC_EXCEPTION); empty if it can."""
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
