"""The topic of the sequential client: its names and its limits."""

from __future__ import annotations

OWN_TOPICS = ("sequential.client", "sequential_client")
"""The topic's name, and that of the topic that is made when it is deleted. Kafka takes no two names
that differ in `.` and `_` only, as long as both are there."""
MOST_BYTES = 2_000
"""Of a batch: the topic's own limit, whatever that of the cluster is."""
