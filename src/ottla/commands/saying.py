"""What `ottla up` prints: that it is ready, or why it cannot start and what to do about it."""

from __future__ import annotations

import errno
import json
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ottla.broker.cluster.async_cluster import AsyncCluster


def unusable(error: OSError) -> str:
    """A message about an address or a folder that cannot be used, with what the user can do."""
    from ottla.broker.errors import UnusableAddressError
    from ottla.commands.up_options import as_options

    text = error.why if isinstance(error, UnusableAddressError) else error.strerror or str(error)
    if error.errno == errno.EADDRINUSE:
        port = _port_in(text)
        return f"port {port} is in use; stop what listens there, or choose another with --port"
    if error.filename is not None:
        return f"--data-dir {error.filename}: {os.strerror(error.errno or 0)}"
    if error.errno in {errno.EACCES, errno.EPERM}:
        return f"not allowed to listen ({text}); choose a port above 1023 with --port"
    if isinstance(error, UnusableAddressError):
        return as_options(str(error))
    return text


def _port_in(text: str) -> str:
    """The port in `127.0.0.1:9092: Address already in use`."""
    return text.partition(": ")[0].rpartition(":")[2] or "asked for"


def first_of(cluster: AsyncCluster) -> str:
    """The address at which the first node is advertised."""
    return cluster.bootstrap_servers.partition(",")[0]


def ready_object(cluster: AsyncCluster) -> str:
    """The cluster that is ready, as JSON: addresses, profile, nodes and topics."""
    seen = cluster.describe()
    ready: dict[str, Any] = {
        "ready": True,
        "bootstrap": first_of(cluster),
        "bootstrap_servers": cluster.bootstrap_servers,
        "cluster_id": seen.cluster_id,
        "profile": cluster.config.profile,
        "nodes": [
            {"node": node, "host": host, "port": port}
            for node, (host, port) in cluster.advertised.items()
        ],
        "topics": [
            {
                "name": name,
                "partitions": len(partitions),
                "replication_factor": len(partitions[0].replicas),
            }
            for name, partitions in seen.topics.items()
        ],
    }
    return json.dumps(ready)
