"""DescribeCluster (key 60), versions 0 to 2: the brokers that are running, and the controller.

From version 1 on the request has an endpoint type. If it asks for controllers (2), a broker answers
MISMATCHED_ENDPOINT_TYPE with an empty cluster id and controller -1; any other type is
UNSUPPORTED_ENDPOINT_TYPE (K-DESCRIBE-CLUSTER). A broker that is not running is *fenced* in Kafka's
words: it is listed from version 2 on, if the request asks for fenced brokers (KIP-1073).
"""

from __future__ import annotations

from ottla.broker.errors import ErrorCode
from ottla.broker.wire.answers import ClusterBroker, DescribeClusterAnswer
from ottla.broker.wire.api.authorized import cluster_operations
from ottla.broker.wire.api.call import Call
from ottla.broker.wire.host import named_controller
from ottla.broker.wire.requests import DescribeClusterRequest

BROKERS, CONTROLLERS = 1, 2


def handle(request: DescribeClusterRequest, call: Call) -> None:
    """Answer from what this node knows."""
    if request.endpoint_type != BROKERS:
        _refuse(call, request.endpoint_type)
        return
    host = call.host
    brokers = host.brokers()
    up = {broker.node for broker in brokers}
    listed = brokers
    if request.include_fenced_brokers:
        listed = [*brokers, *(each for each in host.registered() if each.node not in up)]
    call.answer(
        DescribeClusterAnswer(
            ErrorCode.NONE,
            cluster_id=host.cluster_id,
            controller_id=named_controller(host, brokers),
            brokers=[
                ClusterBroker(each.node, each.host, each.port, is_fenced=each.node not in up)
                for each in listed
            ],
            cluster_authorized_operations=cluster_operations(request),
        )
    )


def _refuse(call: Call, asked_for: int) -> None:
    if asked_for == CONTROLLERS:
        error = ErrorCode.MISMATCHED_ENDPOINT_TYPE
        message = "This endpoint is a broker's; controllers have none of their own."
    else:
        error = ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
        message = f"Unsupported endpoint type {asked_for}"
    call.answer(DescribeClusterAnswer(error, message))
