"""The producer state machine without I/O: what is a duplicate.

Per partition it knows each producer's epoch and last sequences, decides by a
table of rules whether a batch is accepted, parked, a duplicate or rejected,
and orders the requests of one producer by a mutex that is a plain object.

It is not storage and not the wire: it sees sequence numbers and offsets,
never record bytes, and imports only `ottla.log.types`.
"""

if __name__ != "ottla.idempotency":
    raise ImportError("import me as ottla.idempotency, not idempotency")  # pragma: no cover
