"""The invariants of the replicated log.

Most name one promise of Raft, and judge the history. The last one, sim-I52, asks another model
about each step.
"""

from __future__ import annotations

from ottla.sim.invariants import replicas, resting, steps
from ottla.sim.invariants.durability import Durability
from ottla.sim.invariants.invariant import Invariant, Place
from ottla.sim.invariants.leadership import Leadership
from ottla.sim.invariants.terms import Terms

RAFT: tuple[Invariant, ...] = (
    Invariant("sim-I15", "two leaders in a term", "a term has one leader", Place.ONLINE, Terms),
    Invariant(
        "sim-I16",
        "double vote",
        "a node votes for one candidate in a term, for itself if it leads; while it "
        "is up each vote that it wrote counts, across restarts each vote that it sent",
        Place.ONLINE,
        Terms,
    ),
    Invariant(
        "sim-I17",
        "term regression",
        "a node's term never falls while it is up, and after a restart it is never below "
        "a term in which others saw it vote or lead",
        Place.ONLINE,
        Terms,
    ),
    Invariant(
        "sim-I18",
        "leader append-only",
        "a leader never cuts its own log",
        Place.ONLINE,
        Durability,
    ),
    Invariant(
        "sim-I19",
        "log matching",
        "entries of one index and term have the same log before them, wherever they are written",
        Place.ONLINE,
        Durability,
    ),
    Invariant(
        "sim-I20",
        "leader completeness",
        "a new leader's log holds what leaders of lower terms have committed by then",
        Place.ONLINE,
        Durability,
    ),
    Invariant(
        "sim-I21",
        "state machine safety",
        "all replicas apply the same entry at an index, with the same log before it",
        Place.ONLINE,
        Durability,
    ),
    Invariant(
        "sim-I22",
        "truncation below commit",
        "a node never cuts an entry that it knows is committed, never goes back to a "
        "snapshot before it, and loses no durable entry in a crash",
        Place.ONLINE,
        Durability,
    ),
    Invariant(
        "sim-I23",
        "commit regression",
        "what a leader commits is never below what was committed in its term or an earlier one",
        Place.ONLINE,
        Leadership,
    ),
    Invariant(
        "sim-I24",
        "commit without a durable quorum",
        "what is committed is durable on a quorum of nodes at that moment, the same log on each",
        Place.ONLINE,
        Durability,
    ),
    Invariant(
        "sim-I50",
        "a leader that falls in peace",
        "when all faults are over and nothing is left to do, every leader stays one",
        Place.END,
        resting.fallen,
    ),
    Invariant(
        "sim-I37",
        "replicas hold different records",
        "in the end all logs hold the same record at each committed offset, with the same"
        " producer, epoch and sequence, and none has a hole there",
        Place.END,
        replicas.differing_copies,
    ),
    Invariant(
        "sim-I52",
        "a step that is not allowed",
        "every message, write, sync, commit and answer of a node is a step that the specification"
        " of Raft, in-sync and reads allows",
        Place.END,
        steps.forbidden,
    ),
)
