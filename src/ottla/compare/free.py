"""Fields that no broker's rules decide: two brokers may answer them differently.

Of such a field only the *kind* of its value is compared: null, none (-1, 0 or the zero id) or some.
A case that names the field is more exact (`ottla.compare.case`). A time close to the broker's clock
counts as that clock's time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from ottla.compare.fields import Fields, Plain

DAY_MS = 86_400_000
ZERO_ID = "00000000-0000-0000-0000-000000000000"
_INDEX = re.compile(r"\[\d+\]")
_TIMES = re.compile(r"(?:^|\.)(?:log_append_time|timestamp|base_timestamp|max_timestamp)$")


def without_indexes(path: str) -> str:
    """A path without the numbers of its elements: `topics.partitions.error_code`."""
    return _INDEX.sub("", path)


def _some(value: Plain) -> Plain:
    if value is None:
        return None
    if value in {-1, "", ZERO_ID}:
        return "none"
    return "some"


def _present(value: Plain) -> Plain:
    return None if value is None else "some"


def _not_zero(value: Plain) -> Plain:
    return "none" if value == 0 else "some"


def _anything(_: Plain) -> Plain:
    return "any"


class Free(NamedTuple):
    """Fields whose values are free."""

    api: str
    """`*`: of every API."""
    path: re.Pattern[str]
    """Of the whole path without indexes."""
    kind: Callable[[Plain], Plain]
    why: str


def _free(api: str, path: str, kind: Callable[[Plain], Plain], why: str) -> Free:
    return Free(api, re.compile(path), kind, why)


FREE = (
    _free("*", r"throttle_time", _anything, "quotas are the operator's"),
    _free("*", r"(.*\.)?(host|port|rack|cluster_id)", _present, "where a broker is"),
    _free("*", r"(.*\.)?(controller_id|leader_id|node_id|broker_id)", _some, "who a broker is"),
    _free("*", r"(.*\.)?(replica_nodes|isr_nodes)", _some, "who a broker is"),
    _free("*", r"brokers\.length", _not_zero, "how many brokers there are"),
    _free("*", r"(.*\.)?(current_)?leader_epoch", _some, "how often a leader was elected"),
    _free("*", r".*\.partition_leader_epoch", _some, "how often a leader was elected"),
    _free("*", r"(.*\.)?topic_id", _some, "drawn when a topic is made"),
    _free("*", r"(.*\.)?(error_message|batch_index_error_message)", _present, "words for people"),
    _free("*", r"(.*\.)?topic_authorized_operations", _some, "who may do what"),
    _free("init_producer_id", r"producer_id", _some, "the next of the cluster"),
    _free("fetch", r"session_id", _not_zero, "drawn for a session"),
    _free("create_topics", r"topics\.configs.*", _anything, "which configs a broker has"),
)
"""The first row that applies decides."""


def compared(api: str, path: str, value: Plain, names: Mapping[str, str], now: int) -> Plain:
    """What is compared of a field. `names` are the topics of the case by their names on that
    broker, `now` is the broker's clock."""
    plain = without_indexes(path)
    for row in FREE:
        if row.api in {"*", api} and row.path.fullmatch(plain):
            return row.kind(value)
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, int) and _TIMES.search(plain) and abs(value - now) < DAY_MS:
        return "now"
    return value


def is_exact(api: str, path: str, value: Plain, names: Mapping[str, str], now: int) -> bool:
    """Whether a value means the same wherever it is answered: it is not free, no name of this run
    alone, and no time of this broker's clock. `names` and `now` as in `compared`."""
    plain = without_indexes(path)
    free = any(row.api in {"*", api} and row.path.fullmatch(plain) for row in FREE)
    return not free and compared(api, path, value, names, now) == value


def comparable(api: str, fields: Fields, names: Mapping[str, str], now: int) -> dict[str, Plain]:
    """All fields of an answer as they are compared; `names` as the case calls its topics."""
    back = {real: called for called, real in names.items()}
    return {path: compared(api, path, each.value, back, now) for path, each in fields.items()}
