"""Settings as a person gives them: what else they change, and mutants by either name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ottla.sim.settings.ranges import MAX_NODES

if TYPE_CHECKING:
    from ottla.sim.settings.settings import RunConfig

ACKS = {"all": -1}
"""Words that clients use for numbers of this setting."""
_MUTANT = re.compile(r"(?:sim-)?m(\d{1,2})", re.IGNORECASE)


def mutant_id(name: str) -> str:
    """The id of a mutant: `M06` for `M06`, `m06`, `m6` and `sim-M06`, which pages use. Any other
    text is returned as it is; whether such a mutant exists is checked elsewhere."""
    found = _MUTANT.fullmatch(name)
    return name if found is None else f"M{found[1]:0>2}"


def meant(name: str, value: Any) -> Any:
    """The number that a word stands for, if the setting is a number."""
    word = name == "acks" and isinstance(value, str)
    return ACKS.get(value, value) if word else value


def fitted(told: Mapping[str, Any], plain: RunConfig) -> dict[str, Any]:
    """What was given, and adapted nodes and replicas if they were not given and would not fit: as
    many replicas as must be in sync, as many nodes as replicas, and no more replicas than nodes. A
    request never gets a longer timeout than its batch."""
    both = dict(told)
    if "acks" in both:
        both["acks"] = meant("acks", both["acks"])
    least, nodes, replicas = both.get("min_insync"), both.get("nodes"), both.get("replicas")
    most = nodes if type(nodes) is int else MAX_NODES
    if replicas is None and type(least) is int and plain.replicas < least <= most:
        replicas = both["replicas"] = least
    if nodes is None and type(replicas) is int and plain.nodes < replicas <= MAX_NODES:
        both["nodes"] = replicas
    if replicas is None and type(nodes) is int and nodes < plain.replicas:
        both["replicas"] = nodes
    delivery = both.get("delivery_timeout_ms")
    if type(delivery) is int and 0 < delivery < plain.request_timeout_ms:
        both.setdefault("request_timeout_ms", delivery)
    mutants = both.get("mutants")
    if isinstance(mutants, str):
        both["mutants"] = " ".join(map(mutant_id, mutants.split(" ")))
    return both
