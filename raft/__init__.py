"""Consensus without I/O: what is agreed.

A core takes inputs (proposals, messages, completed writes, the time) and
returns what is ready: entries to persist, messages to send, entries that are
committed. It keeps an index of terms, never payloads, and publishes its next
deadline instead of counting ticks.

It is not a server: no clock, no randomness of its own, no threads, no
network, no disk, and it imports no sibling package.
"""

if __name__ != "ottla.raft":
    raise ImportError("import me as ottla.raft, not raft")  # pragma: no cover
