"""Requests that wait for the controller: who fails behind its answer ends the connection.

Found by comparing every field with Apache Kafka 4.3.1: a text too long for its field failed where
nobody caught it, and the client waited until it lost patience.
"""

import asyncio
from typing import Any

import pytest

from broker_fake_host import FakeHost
from broker_wire import run
from ottla.broker.errors import ErrorCode
from ottla.broker.wire.requests import ZERO_ID

CREATION = {"name": "n", "num_partitions": 1, "replication_factor": 1}
REQUESTS: dict[str, dict[str, Any]] = {
    "create_topics": {
        "topics": [CREATION | {"assignments": (), "configs": ()}],
        "timeout": 1000,
        "validate_only": False,
    },
    "delete_topics": {"topics": [{"name": "t", "topic_id": None}], "timeout": 1000},
    "init_producer_id": {
        "transactional_id": None,
        "transaction_timeout": 0,
        "producer_id": -1,
        "producer_epoch": -1,
    },
    "metadata": {
        "topics": [{"name": "n", "topic_id": ZERO_ID}],
        "allow_auto_topic_creation": True,
        "include_topic_authorized_operations": False,
    },
}


class Senseless(FakeHost):
    """Its controller answers what no handler can make an answer of."""

    def control(self, _command, done, _deadline):
        def decide():
            del self.images
            done(ErrorCode.NONE, {})

        asyncio.get_running_loop().call_soon(decide)

    def new_producer_id(self, done):
        asyncio.get_running_loop().call_soon(done, ErrorCode.NONE, "no number", 0)


@pytest.mark.parametrize("api", REQUESTS)
def test_a_failure_behind_the_controllers_answer_leaves_no_client_waiting(api):
    async def test(wire):
        client = await wire.client()
        asked = client.send(api, **REQUESTS[api])
        await asyncio.wait_for(client.closed, 5)
        with pytest.raises(ConnectionError):
            await asked
        (failure,) = wire.failures
        assert isinstance(failure["exception"], Exception)
        wire.failures.clear()

    run(test, Senseless())
