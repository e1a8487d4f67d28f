"""Who is told what becomes of the replicas of a node, and acts on nothing: `Runner.watch`."""

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
    """What somebody wants to hear of the replicas of a node, each time before the node acts on it.

    Each call names the group; its replica is to be had from the node's view
    (`ottla.broker.node.inspection`). A call that is None is not made and costs nothing.
    """

    applied: Heard | None = None
    """A replica has applied more of its log."""
    role_changed: Heard | None = None
    """It has another role, term or known leader."""
    dropped: Callable[[GroupId, Sequence[Entry]], None] | None = None
    """The log of a newer leader replaced these entries of it."""


def told_first(
    heard: Callable[Concatenate[GroupId, _More], None] | None,
    act: Callable[Concatenate[_H, _More], None],
) -> Callable[Concatenate[_H, _More], None]:
    """Tell a watcher of a group, if it wants to hear that, and then whoever acts on it."""
    if heard is None:
        return act

    def both(hosted: _H, /, *more: _More.args, **named: _More.kwargs) -> None:
        heard(hosted.group, *more, **named)
        act(hosted, *more, **named)

    return both
