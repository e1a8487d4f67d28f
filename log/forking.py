"""Descriptors that a forked child must not keep of its parent: `disown_in_children`.

A fork copies every descriptor. As long as such a child lives, the parent's listeners stay open, its
clients connected and its folders locked, even if the parent closes them. So every owner of
descriptors registers here. Right after a fork, in the child, each descriptor is replaced by
`/dev/null` under the same number. It is not closed: the child could get the free number for a file
of its own, and an inherited object would close that file later.

The descriptor of an event loop (epoll) is replaced by a new, empty one. Parent and child share one
set of events in the kernel, so what the child's copy of the loop unregisters would be gone in the
parent, too.

Threads and LMDB environments are not handled here. Their owners compare `os.getpid()` and raise if
a child uses them.
"""

from __future__ import annotations

import os
import select
from collections.abc import Iterable
from contextlib import suppress
from typing import Protocol
from weakref import WeakSet


class Owner(Protocol):
    """An object that owns descriptors."""

    def descriptors(self) -> Iterable[int]:
        """The descriptors that it owns now. Called in a forked child: it must not lock or wait."""


class LoopOwner(Protocol):
    """An object that owns event loops."""

    def pollers(self) -> Iterable[int]:
        """The epoll descriptors of its event loops."""


_owners: WeakSet[Owner] = WeakSet()
_loop_owners: WeakSet[LoopOwner] = WeakSet()


def disown_in_children(owner: Owner) -> None:
    """As long as `owner` lives, its descriptors are replaced in forked children."""
    _owners.add(owner)


def disown_loops_in_children(owner: LoopOwner) -> None:
    """As long as `owner` lives, the epoll descriptors of its loops are replaced in children."""
    _loop_owners.add(owner)


def _disown() -> None:
    """Replace the registered descriptors. Runs in a child, before any other code of it."""
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    owners, loop_owners = list(_owners), list(_loop_owners)
    # From here on these numbers are not the owners' any more, also in children of this child.
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
