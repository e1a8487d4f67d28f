"""The topic of the sequential client: its names and its limits."""

from __future__ import annotations

OWN_TOPICS = ("sequential.client", "sequential_client")
"""The name of the first topic, and of the one that is created after that was deleted. Kafka does
not allow two topics at once whose names differ only in `.` and `_`."""
MOST_BYTES = 2_000
"""The largest batch, in bytes: the topic's own limit, which overrides the cluster's."""
