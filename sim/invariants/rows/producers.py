"""The invariants of the sequences of producers and what the broker remembers of them.

Most are judged at the end, by the canonical log or by what leaders decided about batches. Those
about what a leader says of itself are judged online.
"""

from __future__ import annotations

from ottla.sim.invariants import arrivals, decisions, forgetting, order, refusals, resent, states
from ottla.sim.invariants.checks import Checks, Steps
from ottla.sim.invariants.invariant import Invariant, Place
from ottla.sim.invariants.leadership import Leadership

PRODUCERS: tuple[Invariant, ...] = (
    Invariant(
        "sim-I02",
        "duplicate",
        "within one epoch of one producer no sequence and no value is stored twice, unless the log "
        "forgot the producer in between",
        Place.END,
        order.duplicates,
    ),
    Invariant(
        "sim-I03",
        "reorder",
        "the records of one producer are in the log in the order in which its client was "
        "handed them (of two copies the first counts), except those that it left out when the "
        "log had forgotten it",
        Place.END,
        order.reordered,
    ),
    Invariant(
        "sim-I04",
        "gap accepted",
        "in one epoch of one producer each sequence follows the one before, and 2147483647 is "
        "followed by 0, unless the log forgot the producer in between",
        Place.END,
        order.gaps,
    ),
    Invariant(
        "sim-I05",
        "stale epoch, or a new one that does not begin with 0",
        "epochs of one producer never go back in the log, and a newer one begins with sequence 0, "
        "unless the log forgot the producer in between",
        Place.END,
        order.epochs,
    ),
    Invariant(
        "sim-I25",
        "producer state differs from a replay",
        "after the same entry all replays of a log have the same producer state, and each life "
        "applies one entry after the other",
        Place.END,
        states.replays,
    ),
    Invariant(
        "sim-I26",
        "uncommitted state leaks",
        "a new leader's producer table holds nothing in flight of an earlier leadership",
        Place.ONLINE,
        Leadership,
    ),
    Invariant(
        "sim-I27",
        "snapshot differs from a replay",
        "a producer state that began with a snapshot equals that of a replay of the log",
        Place.END,
        states.snapshots,
    ),
    Invariant(
        "sim-I34",
        "idempotence strength",
        "no record is stored twice because the broker refused what it had stored already,"
        " nor because a client began a new epoch after a rightly refused gap, unless "
        "librdkafka's rules say so; other copies are told with their cause",
        Place.END,
        resent.resent,
    ),
    Invariant(
        "sim-I35",
        "a decision the reference model would not take",
        "what a leader decides about a batch follows from the log before it, as the reference "
        "model reads it (profiles that are modelled)",
        Place.END,
        decisions.misjudged,
    ),
    Invariant(
        "sim-I36",
        "false gap",
        "no leader reports a gap to a client if the batch, or what precedes it, was "
        "committed when the leader was asked",
        Place.END,
        refusals.untrue_gaps,
    ),
    Invariant(
        "sim-I38",
        "answer against Kafka's order of checks",
        "a produce request with several flaws is answered with what Kafka finds first, "
        "unless the node lacks the topic, the leadership or replicas in sync and says that",
        Place.ONLINE,
        Checks,
    ),
    Invariant(
        "sim-I49",
        "an answer that a model of the topic does not give",
        "a client that alone writes to a topic, one request at a time, is answered as a model of "
        "that topic says, or told to try again",
        Place.ONLINE,
        Steps,
    ),
    Invariant(
        "sim-I51",
        "forgotten too early",
        "a leader proposes to forget a producer only when it has applied none of its batches for "
        "the expiry time, or when its table is full; then it is the one that is idle for longest",
        Place.END,
        forgetting.wrongly_forgotten,
    ),
    Invariant(
        "sim-I45",
        "overtaken request",
        "a leader decides about the produce requests of one connection and producer in the order "
        "in which they came",
        Place.END,
        arrivals.overtaken,
    ),
)
