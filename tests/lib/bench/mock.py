"""librdkafka's mock broker, in a process of its own, where confluent-kafka is installed."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from bench.pipe import say


def start(topic: str) -> tuple[Any, tuple[str, int]]:
    """The client that carries the mock, and where the topic's leader listens."""
    from confluent_kafka import Producer

    client = Producer({"bootstrap.servers": "unused", "test.mock.num.brokers": 1})
    found = client.list_topics(topic, timeout=10)
    while found.topics[topic].error is not None:
        time.sleep(0.01)
        found = client.list_topics(topic, timeout=10)
    leader = found.brokers[found.topics[topic].partitions[0].leader]
    return client, (leader.host, leader.port)


def main(topic: str) -> None:
    """Serve the bench until its pipe ends."""
    client, address = start(topic)
    say(address=address)
    for line in sys.stdin:
        assert json.loads(line)["do"] == "counts"
        say(cpu=time.process_time())
    del client


if __name__ == "__main__":
    main(sys.argv[1])
