"""What a forked child must not keep of its parent: `disown_in_children`.

A fork copies every descriptor. A child that lives on would keep the parent's listeners listening,
its clients connected, and its folders locked, whatever the parent closes. So whoever owns
descriptors registers here, and right after a fork, in the child, each of them is replaced by
`/dev/null` under the same number. It is not closed: a number that is free would be given to
something of the child's, and objects that the child has inherited would close that later.

Descriptors of event loops are replaced by a fresh, empty one of their kind: what a child's copy of
a loop unregisters would otherwise be gone from the parent's, for both share one set in the kernel.

What the objects hold beside descriptors (threads, LMDB environments) is not looked at: a child that
uses them is told so by whoever owns them, which compares `os.getpid()`.
"""

from __future__ import annotations

import os
import select
from collections.abc import Iterable
from contextlib import suppress
from typing import Protocol
from weakref import WeakSet


class Owner(Protocol):
    """Something with descriptors of its own."""

    def descriptors(self) -> Iterable[int]:
        """Those that it has now. Called in a forked child: it must not lock or wait."""


class LoopOwner(Protocol):
    """Something that runs on an event loop."""

    def pollers(self) -> Iterable[int]:
        """The descriptors by which loops wait, where they are of epoll."""


_owners: WeakSet[Owner] = WeakSet()
_loop_owners: WeakSet[LoopOwner] = WeakSet()


def disown_in_children(owner: Owner) -> None:
    """Have forked children give up what `owner` has, for as long as it lives."""
    _owners.add(owner)


def disown_loops_in_children(owner: LoopOwner) -> None:
    """The same for the event loops of `owner`."""
    _loop_owners.add(owner)


def _disown() -> None:
    """In a child, before anything else of it runs."""
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    owners, loop_owners = list(_owners), list(_loop_owners)
    # Their numbers mean nothing of theirs from here on, for children of this child neither.
    _owners.clear()
    _loop_owners.clear()
    for owner in owners:
        for descriptor in owner.descriptors():
            _replace(descriptor, null)
    os.close(null)
    for each in loop_owners:
        for descriptor in each.pollers():
            fresh = select.epoll()
            _replace(descriptor, fresh.fileno())
            fresh.close()


def _replace(descriptor: int, by: int) -> None:
    if descriptor >= 0:
        with suppress(OSError):
            os.dup2(by, descriptor, inheritable=False)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_disown)
