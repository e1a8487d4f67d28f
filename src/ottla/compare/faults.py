"""Checks what a case does to nodes, before it is played: whatever cannot be is refused.

A case of schema 1 has one node, to which nothing happens. In a case of schema 2 each number must be
that of a node, each fault must be possible after those before it, and nothing may be sent to a node
that is killed: there is nobody to answer.
"""

from __future__ import annotations

from collections.abc import Callable

from ottla.compare.case import LEADER, NODES_SCHEMA, Act, Case, Step
from ottla.compare.errors import CaseError
from ottla.compare.tables import Table


class _Cluster:
    """What has happened to the nodes so far, and the rules of what may happen next."""

    def __init__(self, leader: int | None):
        self.leader = leader
        """Who leads; None: whoever was elected, or there is no partition."""
        self.dead: set[int] = set()
        self.paused: set[int] = set()
        self.isolated: set[int] = set()

    def refusal(self, word: str, node: int) -> str:
        """Why this fault is not possible now; empty if it is. Then it has happened."""
        if node in self.dead and word != "restart":
            return f"is {node}, which is killed; restart = {node} first"
        why = _RULES[word](self, node)
        return why.format(node=node)

    def kill(self, node: int) -> str:
        """It ends, with whatever was done to it but its isolation."""
        self.dead.add(node)
        self.paused.discard(node)
        return ""

    def restart(self, node: int) -> str:
        """It begins anew, and hears all others."""
        for each in (self.dead, self.paused, self.isolated):
            each.discard(node)
        return ""

    def pause(self, node: int) -> str:
        """It stands still."""
        if node in self.paused:
            return "is {node}, which is paused already"
        self.paused.add(node)
        return ""

    def resume(self, node: int) -> str:
        """It goes on."""
        if node not in self.paused:
            return "is {node}, which is not paused"
        self.paused.remove(node)
        return ""

    def isolate(self, node: int) -> str:
        """It hears no other node."""
        if node in self.isolated:
            return "is {node}, which is isolated already"
        self.isolated.add(node)
        return ""

    def heal(self, node: int) -> str:
        """It hears the others again."""
        if node not in self.isolated:
            return "is {node}, which is not isolated"
        self.isolated.remove(node)
        return ""

    def lead(self, node: int) -> str:
        """It must be able to lead."""
        if node in self.paused | self.isolated:
            return "is {node}, which is paused or isolated and cannot lead"
        self.leader = node
        return ""


_RULES: dict[str, Callable[[_Cluster, int], str]] = {
    "kill": _Cluster.kill,
    "restart": _Cluster.restart,
    "pause": _Cluster.pause,
    "resume": _Cluster.resume,
    "isolate": _Cluster.isolate,
    "heal": _Cluster.heal,
    "lead": _Cluster.lead,
}
"""By the word of a fault: what it does here. Each returns why it is not possible, if so."""


def check_nodes(told: Table, case: Case, schema: int) -> None:
    """Check a whole case. Raises `CaseError`."""
    if schema < NODES_SCHEMA:
        _check_one_node(told, case)
    for topic in case.topics:
        stray = [each for each in topic.replicas if each > case.nodes]
        if stray or not topic.replicas:
            what = f"has {stray[0]}" if stray else "is empty"
            raise _wrong(told, f"topics.{topic.name}.replicas {what}; {_there(case)}")
    cluster = _Cluster(case.topics[0].replicas[0] if case.topics else None)
    for step in case.steps:
        _check_step(told, case, step, cluster)


def _check_one_node(told: Table, case: Case) -> None:
    """Refuse what a reader of schema 1 would not understand."""
    new = ["nodes"] if case.nodes > 1 else []
    new += [name for name in ("left_out", "settings") if getattr(case, name)]
    for step in case.steps:
        if isinstance(step.ask, Act):
            new.append(f"steps[{step.number}].{step.ask.word}")
        if step.node != 1:
            new.append(f"steps[{step.number}].node")
        if step.in_flight:
            new.append(f"steps[{step.number}].in_flight")
    if new:
        raise _wrong(told, f"{new[0]} needs schema = {NODES_SCHEMA}")


def _check_step(told: Table, case: Case, step: Step, cluster: _Cluster) -> None:
    where = f"steps[{step.number}]"
    named = step.ask.nodes if isinstance(step.ask, Act) else (step.node,)
    key = step.ask.word if isinstance(step.ask, Act) else "node"
    for node in named:
        if node != LEADER and int(node) > case.nodes:
            raise _wrong(told, f"{where}.{key} is {node}; {_there(case)}")
    if isinstance(step.ask, Act):
        _check_act(told, case, step.ask, where, cluster)
        return
    if step.asks and (cluster.leader if step.node == LEADER else step.node) in cluster.dead:
        raise _wrong(told, f"{where}.node is {step.node}, which is killed; nobody would answer")


def _check_act(told: Table, case: Case, act: Act, where: str, cluster: _Cluster) -> None:
    if act.word in _RULES:
        why = cluster.refusal(act.word, act.nodes[0])
        if why:
            raise _wrong(told, f"{where}.{act.word} {why}")
    if act.word in {"lead", "elected", "in_sync"}:
        replicas = case.topics[0].replicas if case.topics else ()
        if not set(act.nodes) <= set(replicas):
            has = ", ".join(map(str, replicas)) or "none"
            raise _wrong(told, f"{where}.{act.word} names a node without a replica; {has} have one")
    if act.word == "elected":
        cluster.leader = None


def _there(case: Case) -> str:
    return f"nodes are 1 to {case.nodes}" if case.nodes > 1 else "there is one node; see nodes"


def _wrong(told: Table, what: str) -> CaseError:
    return CaseError(f"{told.file}: {what}")
