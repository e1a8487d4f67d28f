"""`Watcher`: observes the replicas of a node (`Runner.watch`), for tests and the simulator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Concatenate, ParamSpec, Protocol, TypeAlias, TypeVar

from ottla.raft.types import Entry, GroupId

Heard: TypeAlias = Callable[[GroupId], None]
_More = ParamSpec("_More")


class _Hosted(Protocol):
    """What a driver keeps of a replica."""

    group: GroupId


_H = TypeVar("_H", bound=_Hosted)


@dataclass(frozen=True, slots=True)
class Watcher:
    """Functions that are called when a replica changes, each time before the node acts on it.

    Each gets the group; the node's view has the replica (`ottla.broker.node.inspection`). A
    function that is None costs nothing.
    """

    applied: Heard | None = None
    """The replica has applied more of its log."""
    role_changed: Heard | None = None
    """The replica's role, term or known leader has changed."""
    dropped: Callable[[GroupId, Sequence[Entry]], None] | None = None
    """Entries of a newer leader have replaced these entries of the replica."""


def told_first(
    heard: Callable[Concatenate[GroupId, _More], None] | None,
    act: Callable[Concatenate[_H, _More], None],
) -> Callable[Concatenate[_H, _More], None]:
    """A function that calls `heard` (if it is not None) and then `act`."""
    if heard is None:
        return act

    def both(hosted: _H, /, *more: _More.args, **named: _More.kwargs) -> None:
        heard(hosted.group, *more, **named)
        act(hosted, *more, **named)

    return both
