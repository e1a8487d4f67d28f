"""FindCoordinator (key 10), versions 0 to 6: where a group or a transactional id is looked after.

Neither exists yet (docs/not-implemented.md), and clients shall hear so at once. By key type:

* a group: this node, although it has no groups. librdkafka asks for every consumer, since its
  consumers must name a group; an error here would reach also those that only `assign`, and their
  commits would wait 45 s for a coordinator. The refusal stands one step behind, where a group is
  really used: `ottla.broker.wire.api.no_groups`;
* a transactional id: TRANSACTIONAL_ID_AUTHORIZATION_FAILED, the code that every client takes as
  final (docs/decisions/0027-no-groups-yet.md);
* a share group, or what Kafka does not know either: INVALID_REQUEST, as Kafka does where it has
  none.
"""

from __future__ import annotations

from typing import Any

from ottla.broker.errors import ErrorCode
from ottla.broker.wire.api.call import Call
from ottla.broker.wire.api.encoding import Lazily
from ottla.broker.wire.host import Host

GROUP, TRANSACTION, SHARE = 0, 1, 2
NOBODY = {"node_id": -1, "host": "", "port": -1}

_NO_TRANSACTIONS = "Ottla has no transactions yet: produce without a transactional id."
_NO_SHARES = "Ottla has no share groups."
_REFUSED = {
    TRANSACTION: (ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, _NO_TRANSACTIONS),
    SHARE: (ErrorCode.INVALID_REQUEST, _NO_SHARES),
}


def handle(request: Any, call: Call) -> None:
    """Answer for one key, or for each of them (from version 4 on)."""
    found = _found(getattr(request, "key_type", GROUP), call)
    keys = getattr(request, "coordinator_keys", None)
    if keys is None:
        call.reply(throttle_time=0, **found)
    else:
        call.reply(throttle_time=0, coordinators=Lazily(keys, lambda key: {"key": key, **found}))


def _found(key_type: int, call: Call) -> dict[str, Any]:
    if key_type == GROUP:
        return {"error_code": ErrorCode.NONE, "error_message": None, **_this_node(call.host)}
    unknown = (ErrorCode.INVALID_REQUEST, f"Unknown coordinator key type {key_type}")
    error, text = _REFUSED.get(key_type, unknown)
    call.host.remarks.once(f"{call.client_id} {key_type}", f"client {call.client_id!r}: {text}")
    return {"error_code": error, "error_message": text, **NOBODY}


def _this_node(host: Host) -> dict[str, Any]:
    """This node, as clients are told of it; of one that is cut off, another."""
    brokers = host.brokers()
    named = next((each for each in brokers if each.node == host.node), brokers[0])
    return {"node_id": named.node, "host": named.host, "port": named.port}
