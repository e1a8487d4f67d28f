"""The topic of the sequential client: its names and its limits."""

from __future__ import annotations

_REST = "client" + 232 * "s"
OWN_TOPICS = (f"sequential.{_REST}", f"sequential_{_REST}")
"""The name of the first topic, and of the one that is created after that was deleted. Both are as
long as a name may be. Kafka does not allow two topics at once whose names differ only in `.` and
`_`."""
MOST_BYTES = 2_000
"""The largest batch, in bytes: the topic's own limit, which overrides the cluster's."""
