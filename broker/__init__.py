"""Nodes, wire and cluster: the shell that carries effects out.

`Cluster`, `Topic` and the faults are the public API. The partition, the
controller and the replica in here are as free of I/O as the cores they put
together; runner, connections and transports do what they return.

It is not a full Kafka broker: what it refuses is listed, each with a test,
in `docs/not-implemented.md`.
"""

if __name__ != "ottla.broker":
    raise ImportError("import me as ottla.broker, not broker")  # pragma: no cover
