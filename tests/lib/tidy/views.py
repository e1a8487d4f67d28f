"""The simulator sees a node through `Node.inspect` and `Node.watch`, never its inside.

If a run reached into the driver or a machine, it could change what it looks at, and the driver
could not be refactored. A class of the simulator that *is* a part of a node (a mutant, a replica
whose calls are noted) may use its own attributes.
"""

from collections.abc import Iterator

from tidy.attributes import touched
from tidy.imports import imported
from tidy.source import Source, Violation

DRIVER = "ottla.broker.driver"
INSIDE = frozenset(
    {
        *("runner", "hosted_replicas", "beats", "controller_machine"),
        *("core", "machine"),
        *("on_applied", "on_role", "on_failed"),
    }
)
"""Attributes of a node, its runner and its replicas by which one gets inside of them, or in between
them."""


def through_the_view(source: Source) -> Iterator[Violation]:
    """In `sim/` no import of the driver, and none of `INSIDE` of anything but `self`."""
    if not source.path.startswith("sim/"):
        return
    for node, name in imported(source):
        if name == DRIVER or name.startswith(f"{DRIVER}."):
            yield source.at(node, f"imports {name}; ask Node.inspect()")
    for node in source.nodes:
        for name in touched(node):
            if not INSIDE.isdisjoint(name.split(".")):
                yield source.at(node, f"goes by {name} into a node; ask Node.inspect()")
