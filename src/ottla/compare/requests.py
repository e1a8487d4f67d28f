"""The bytes of a request: from what a case says to the frame on the wire.

References (`$first.base_offset`) and names of topics are filled in here, because they are known
only when the case is run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from struct import Struct
from typing import Any
from uuid import UUID

from ottla.broker.errors import ConfigError
from ottla.broker.wire.client_requests import check_fields, unfit
from ottla.broker.wire.codec import API_NAMES, known_versions, request_schema
from ottla.compare.batches import Batch
from ottla.compare.case import Request
from ottla.compare.errors import CompareError
from ottla.compare.tables import is_reference

USUAL_VERSIONS: Mapping[str, int] = {
    "produce": 9,
    "fetch": 11,
    "list_offsets": 7,
    "metadata": 9,
    "create_topics": 5,
    "delete_topics": 4,
    "delete_records": 2,
    "init_producer_id": 4,
    "api_versions": 3,
    "offset_for_leader_epoch": 4,
    "describe_cluster": 0,
    "find_coordinator": 3,
}
"""The version of a request whose step names none, or the highest below it that the target serves:
what clients of 2026 use, and most brokers serve."""

_HEAD = Struct(">ihhih")
Versions = Mapping[int, tuple[int, int]]
"""By API key: the least and the highest version that a broker serves."""


@dataclass(frozen=True)
class Situation:
    """What is known only when a case is run."""

    versions: Versions
    names: Mapping[str, str]
    """The topics of the case, by what it calls them."""
    now: int
    """The wall clock, in ms since 1970."""
    resolve: Callable[[Any], Any]
    """Looks a reference up; any other value is returned as it is."""


def version_of(request: Request, versions: Versions) -> int:
    """The version in which a request is sent to a broker that serves `versions`."""
    if request.version is not None:
        return request.version
    usual = USUAL_VERSIONS.get(request.api, known_versions(request.key)[-1])
    least, most = versions.get(request.key, (usual, usual))
    return max(min(usual, most), least)


def frame_of(
    request: Request, correlation_id: int, situation: Situation, *, checked: bool = False
) -> bytes:
    """The whole frame. `checked`: it is known that its fields are those of the API, because it was
    built before. Raises `CompareError` if a value does not fit."""
    version = version_of(request, situation.versions)
    tags = b""
    if request.key in API_NAMES and version in known_versions(request.key):
        tags = b"\0" if request_schema(request.key, version).header_tags else b""
    body = request.body
    if body is None:
        body = _body(request, version, situation, checked=checked)
    name = request.client_id
    client_id = b"" if name is None else name.encode()
    tail = client_id + tags + body + request.tail
    tail = tail[: len(tail) - request.cut] if request.cut else tail
    size = _HEAD.size - 4 + len(tail)
    length = -1 if name is None else len(client_id)
    return _HEAD.pack(size, request.key, version, correlation_id, length) + tail


def with_correlation_id(frame: bytes, correlation_id: int) -> bytes:
    """A frame with another correlation id."""
    return frame[:8] + correlation_id.to_bytes(4) + frame[12:]


def _body(request: Request, version: int, situation: Situation, *, checked: bool) -> bytes:
    schema = request_schema(request.key, version)
    try:
        fields = filled(request.fields, situation)
        if not checked:
            check_fields(request.key, version, fields)
        return schema.write(schema.build(**fields))
    except CompareError:
        raise
    except ConfigError as error:
        raise CompareError(str(error)) from None
    except Exception as error:  # noqa: BLE001 - whatever kio and its writers make of a value
        raise CompareError(str(unfit(request.key, version, error))) from None


def filled(value: Any, situation: Situation, key: str = "") -> Any:
    """A value of a case as the codec takes it."""
    if isinstance(value, Mapping):
        return {name: filled(each, situation, name) for name, each in value.items()}
    if isinstance(value, list):
        return [filled(each, situation, key) for each in value]
    if isinstance(value, tuple):
        return b"".join(each.build(situation.resolve, situation.now) for each in value)
    if isinstance(value, Batch):
        return value.build(situation.resolve, situation.now)
    if is_reference(value):
        value = situation.resolve(value)
    if key == "topic_id" and isinstance(value, str):
        return UUID(value).bytes
    return situation.names.get(value, value) if isinstance(value, str) else value
