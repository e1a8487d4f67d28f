"""Where bytes are kept: record batches, keys and stores.

Append and sync are two calls, because an answer with acks=1 waits for the
first and one with acks=all for the second. One recovery routine decides what
a torn or flipped tail means for every store.

It decides nothing about agreement or duplicates, and imports only
`ottla.raft.types`.
"""

if __name__ != "ottla.log":
    raise ImportError("import me as ottla.log, not log")  # pragma: no cover
