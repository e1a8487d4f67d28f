"""Points of coverage in words: what a run reached, for people.

A point is the id of a predicate (`predicates.py`), or an abstract state (`states.py`) as its parts
joined by strokes. Tables count points by these names; a page describes them.
"""

from __future__ import annotations

from ottla.sim.coverage.predicates import PREDICATES
from ottla.sim.coverage.states import State

_STROKE = "/"
_SAYS = {each.id: f"{each.id}, {each.says}" for each in PREDICATES}
_NEWS = {
    "leader": "a leader is elected",
    "stepdown": "a leader steps down",
    "truncate": "a log is cut",
    "crash": "a node goes down",
    "start": "a node starts",
    "pause": "a node is paused",
    "resume": "a node goes on",
    "snapshot": "a snapshot is taken or installed",
    "expire": "a producer is forgotten",
    "error": "a client is told to try again",
    "ok": "a record is acknowledged",
}
_PARTS = (
    ("no node is up", "one node is up", "{} nodes are up"),
    ("nobody leads", "one leads", "several believe that they lead"),
    ("", "in one term", "in two terms", "in three terms or more"),
    ("", "one holds entries that may be cut", "{} hold entries that may be cut"),
    ("", "logs end alike", "logs end at two places", "logs end at three places or more"),
    ("", "one high watermark is behind", "several high watermarks are behind"),
    ("nobody waits", "a batch is waited for", "2 to 4 batches are waited for", "5 or more are"),
)
"""The text for each part of a state, by its value; the last one is for all higher values."""


def name_of(state: State) -> str:
    """The name of a state."""
    return _STROKE.join(map(str, state))


def told(point: str) -> str:
    """A point in words; any other text is returned unchanged.

    >>> told("2/0/1/2/3/1/0/crash")
    'a node goes down: 2 nodes are up, nobody leads, in one term, 2 hold entries that may be cut, \
logs end at three places or more, one high watermark is behind, nobody waits'
    """
    if point in _SAYS:
        return _SAYS[point]
    *parts, news = point.split(_STROKE)
    if news not in _NEWS or len(parts) != len(_PARTS) or not all(map(str.isdigit, parts)):
        return point
    words = (
        says[min(int(part), len(says) - 1)].format(part)
        for says, part in zip(_PARTS, parts, strict=True)
    )
    return f"{_NEWS[news]}: {', '.join(filter(None, words))}"
