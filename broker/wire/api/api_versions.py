"""ApiVersions (key 18), versions 0 to 4.

The answer is generated from `ottla.broker.wire.api.table`, up to the newest versions that the
profile has (`Profile.newest`). An unknown version is answered in the
form of version 0 with UNSUPPORTED_VERSION and one entry, the range of ApiVersions itself; the
connection stays open, and the client then uses a version in that range (K-FRAME). From version 3 on
the client names its software; a name or version that does not match
`[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?` is INVALID_REQUEST (KIP-511). No features are finalized,
so no client uses transaction version 2 (K-FEATURES).
"""

from __future__ import annotations

import re

from ottla.broker.errors import ErrorCode
from ottla.broker.profiles.named import profile_named
from ottla.broker.wire.answers import ApiServed, ApiVersionsAnswer
from ottla.broker.wire.api import table
from ottla.broker.wire.api.call import Call
from ottla.broker.wire.requests import ApiVersionsRequest

KEY = 18
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.\-]*[a-zA-Z0-9])?")


def handle(request: ApiVersionsRequest, call: Call) -> None:
    """Answer with the table."""
    newest = profile_named(call.host.config.profile).newest
    rows = table.up_to(newest)
    if not table.serves(KEY, call.version, newest):
        served = [_served(row) for row in rows if row.key == KEY]
        call.answer(ApiVersionsAnswer(ErrorCode.UNSUPPORTED_VERSION, served))
    elif call.version >= 3 and not _is_sound(request):
        call.answer(ApiVersionsAnswer(ErrorCode.INVALID_REQUEST, []))
    else:
        call.answer(ApiVersionsAnswer(ErrorCode.NONE, [_served(row) for row in rows]))


def _is_sound(request: ApiVersionsRequest) -> bool:
    names = (request.client_software_name, request.client_software_version)
    return all(_SOFTWARE.fullmatch(name) for name in names)


def _served(row: table.Api) -> ApiServed:
    return ApiServed(row.key, *row.advertised)
