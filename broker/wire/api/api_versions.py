"""ApiVersions (key 18), versions 0 to 4.

The answer is generated from `ottla.broker.wire.api.table`. A version nobody here knows is answered
in the form of version 0 with UNSUPPORTED_VERSION and one entry, the range of ApiVersions itself,
and the connection stays open: clients fall back by it (facts/kafka.md 1.1, 8). From version 3 on
the client names its software; a name or version outside `[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?`
is INVALID_REQUEST (KIP-511). No features are finalized, which keeps every client away from
transaction version 2 (facts/kafka.md 4.1).
"""

from __future__ import annotations

import re
from typing import Any

from ottla.broker.errors import ErrorCode
from ottla.broker.wire.api import table
from ottla.broker.wire.api.call import Call
from ottla.broker.wire.codec import response_schema

KEY = 18
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.\-]*[a-zA-Z0-9])?")
_answers: dict[int, bytes] = {}


def handle(request: Any, call: Call) -> None:
    """Answer with the table; `request` is None when the version is one we do not know."""
    if request is None:
        own = table.BY_KEY[KEY].advertised
        keys = [{"api_key": KEY, "min_version": own[0], "max_version": own[1]}]
        call.answer_bytes(_encode(0, ErrorCode.UNSUPPORTED_VERSION, keys))
    elif call.version >= 3 and not _is_sound(request):
        call.answer_bytes(_encode(call.version, ErrorCode.INVALID_REQUEST, []))
    else:
        answer = _answers.get(call.version)
        if answer is None:
            answer = _answers[call.version] = _encode(call.version, ErrorCode.NONE, _rows())
        call.answer_bytes(answer)


def _is_sound(request: Any) -> bool:
    names = (request.client_software_name, request.client_software_version)
    return all(_SOFTWARE.fullmatch(name) for name in names)


def _rows() -> list[dict[str, int]]:
    return [
        {"api_key": row.key, "min_version": row.advertised[0], "max_version": row.advertised[1]}
        for row in table.TABLE
    ]


def _encode(version: int, error: ErrorCode, keys: list[dict[str, int]]) -> bytes:
    schema = response_schema(KEY, version)
    return schema.write(schema.build(error_code=error, api_keys=keys, throttle_time=0))
