"""FindCoordinator (key 10), versions 0 to 6: the coordinator of a group or a transactional id.

Ottla has neither yet (docs/not-implemented.md), and a client should learn that at once. By key
type:

* a group: this node, although it has no groups. librdkafka asks this for every consumer, because
  its consumers must name a group. An error here would also affect consumers that only `assign`, and
  their commits would wait 45 s for a coordinator. So the refusal comes with the next request, which
  really uses the group: `ottla.broker.wire.api.no_groups`;
* a transactional id: TRANSACTIONAL_ID_AUTHORIZATION_FAILED, which every client takes as final
  (docs/decisions/0027-no-groups-yet.md);
* a share group or an unknown type: INVALID_REQUEST, as in Kafka without share groups.
"""

from __future__ import annotations

from ottla.broker.errors import ErrorCode
from ottla.broker.wire.answers import Coordinator, FindCoordinatorAnswer, Lazily
from ottla.broker.wire.api.call import Call
from ottla.broker.wire.host import Host
from ottla.broker.wire.requests import FindCoordinatorRequest

GROUP, TRANSACTION, SHARE = 0, 1, 2

_NO_TRANSACTIONS = "Ottla has no transactions yet: produce without a transactional id."
_NO_SHARES = "Ottla has no share groups."
_REFUSED = {
    TRANSACTION: (ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, _NO_TRANSACTIONS),
    SHARE: (ErrorCode.INVALID_REQUEST, _NO_SHARES),
}


def handle(request: FindCoordinatorRequest, call: Call) -> None:
    """Answer for one key, or for each of them (from version 4 on)."""
    found = _found(request.key_type, call)
    keys = request.coordinator_keys
    if keys is None:
        call.answer(found)
    else:
        call.answer(FindCoordinatorAnswer(Lazily(keys, lambda key: found._replace(key=key))))


def _found(key_type: int, call: Call) -> Coordinator:
    if key_type == GROUP:
        return _this_node(call.host)
    unknown = (ErrorCode.INVALID_REQUEST, f"Unknown coordinator key type {key_type}")
    error, text = _REFUSED.get(key_type, unknown)
    call.host.remarks.once(f"{call.client_id} {key_type}", f"client {call.client_id!r}: {text}")
    return Coordinator(error, text)


def _this_node(host: Host) -> Coordinator:
    """This node as a coordinator; if it is cut off, another node that it names to clients."""
    brokers = host.brokers()
    named = next((each for each in brokers if each.node == host.node), brokers[0])
    return Coordinator(ErrorCode.NONE, None, named.node, named.host, named.port)
