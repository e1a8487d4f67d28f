"""Messages that an election has overtaken: of one term, received after a later leader began.

Most are harmless: Raft ignores what comes from an earlier term. But where that rule is broken, or
such a message tells of something that is no longer so, it is the cause that a reader looks for.

Source: thesis 3 (messages with a stale term are rejected).
"""

from __future__ import annotations

from ottla.raft.messages import AppendEntries, AppendReply, InstallSnapshot, VoteReply
from ottla.report.explain.wires import entries
from ottla.sim.recording.record import Recording
from ottla.sim.recording.recorder import Step


def overtaken(recording: Recording, partition: int) -> dict[int, str]:
    """The sentence of each step in which a node of the partition received such a message, by the
    number of the step."""
    told: dict[int, str] = {}
    leader, newest = 0, 0
    for step in recording.near(partition):
        row = step.row
        if step.what == "leader" and row is not None and row.partition == partition:
            if (row.term or 0) > newest:
                leader, newest = row.node or 0, row.term or 0
        elif step.what == "received" and step.partition == partition:
            text = _told(step, newest)
            if text:
                told[step.number] = f"{text}; node {leader} has begun to lead term {newest}"
    return told


def _told(step: Step, newest: int) -> str:
    if step.wire is None:
        return ""
    message, origin = step.wire.message, step.wire.origin[1]
    what = _what(message)
    if not what or message.term >= newest:
        return ""
    return f"gets {what} of node {origin}, of term {message.term}"


def _what(message: object) -> str:
    """What the message is, in words; empty if it cannot matter later."""
    if isinstance(message, AppendEntries):
        return entries(message) if message.last_index > message.prev_index else "an empty append"
    if isinstance(message, InstallSnapshot):
        return "a snapshot"
    if isinstance(message, AppendReply) and message.success:
        return "an acknowledgement"
    if isinstance(message, VoteReply) and message.granted and not message.pre:
        return "a vote"
    return ""
