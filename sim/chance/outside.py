"""Refuses the outside world during a run: everything that no seed decides.

`refused` replaces the functions of `GUARDED` in their own modules for the length of a run. Code
that reaches the wall clock, the global generator, a process, a file or a socket gets an exception
that names the call site. Other threads, and the packages in `TOLERATED` (which watch the run and
take no part in it), reach the real functions.

`ordered` does the same for sets in deciding code. There the names `set` and `frozenset` stand for
sets that know their members and refuse to list them, because the order would depend on the hash
seed or on addresses. Sets that are written `{a, b}`, or as comprehensions, are not seen here.
`tests/tidy` finds them in the sources, and some seeds are run with such sets made of the same kind
(`tests/sim/chance/test_set_displays.py`).

`refused` also replaces names by which a deciding module bound one of these functions before the run
(`from time import time`), and the classes `datetime` and `date`, whose `now` and `today` are C
code.

Not seen: `datetime.datetime.now()` by way of its module, names bound in functions or classes, and
what other C code reads by itself. `tests/tidy` checks that no deciding module imports these.
"""

from __future__ import annotations

import builtins
import io
import os
import random
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import date, datetime
from inspect import currentframe
from types import FrameType, ModuleType
from typing import Any, TypeVar

_Set = TypeVar("_Set", bound="set[Any] | frozenset[Any]")
_RANDOM = (
    *("betavariate", "choice", "choices", "expovariate", "gammavariate", "gauss", "getrandbits"),
    *("lognormvariate", "normalvariate", "paretovariate", "randbytes", "randint", "random"),
    *("randrange", "sample", "seed", "setstate", "shuffle", "triangular", "uniform"),
    *("vonmisesvariate", "weibullvariate", "_urandom"),
)
GUARDED: tuple[tuple[Any, tuple[str, ...]], ...] = (
    (
        time,
        (
            *("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns"),
            *("process_time", "process_time_ns", "thread_time", "thread_time_ns", "sleep"),
            *("clock_gettime", "clock_gettime_ns", "localtime", "gmtime", "ctime", "asctime"),
            "strftime",
        ),
    ),
    (random, _RANDOM),
    (random.SystemRandom, ("random", "getrandbits")),
    (uuid, ("uuid1", "uuid4")),
    (os, ("urandom", "getrandom", "fork", "system")),
    (threading.Thread, ("start",)),
    (subprocess.Popen, ("__init__",)),
    (socket.socket, ("__init__",)),
    (socket, ("getaddrinfo", "gethostbyname", "gethostname", "getnameinfo")),
)
MACHINE: tuple[tuple[Any, tuple[str, ...]], ...] = (
    (os, ("getpid", "getppid", "getlogin", "cpu_count", "getloadavg", "times", "uname")),
    (os, ("open", "listdir", "scandir")),
    (builtins, ("open",)),
    (io, ("open",)),
)
"""What a run in the kernel refuses besides `GUARDED`. On an asyncio loop a node may keep its log on
a real disk."""
READS_THE_CLOCK_AFTER = {"localtime": 0, "gmtime": 0, "ctime": 0, "asctime": 0, "strftime": 1}
"""Functions of `time` that read the clock if an argument is missing, and after how many arguments
they do. With all arguments they only compute."""
TOLERATED = ("_pytest", "coverage", "faulthandler", "hypothesis", "pytest", "pluggy")
_FILES = ("os", "pathlib", "tempfile")
_BETWEEN = (
    *("asyncio", "async_timeout", "contextlib", "random", "secrets", "threading", "uuid"),
    *_FILES,
)
"""Libraries that call these functions on behalf of their caller."""
_OURS = ("ottla.sim.asyncio_runs.", "ottla.sim.chance.outside")
DECIDING = (
    "ottla_plugin_",
    "ottla.broker.",
    "ottla.idempotency.",
    "ottla.log.",
    "ottla.raft.",
    "ottla.sim.chance.choices",
    "ottla.sim.chance.delays",
    "ottla.sim.clients",
    "ottla.sim.ending.breaking",
    "ottla.sim.ending.ending",
    "ottla.sim.ending.lost_clients",
    "ottla.sim.ending.probes",
    "ottla.sim.ending.rest",
    "ottla.sim.ending.topics",
    "ottla.sim.history.history",
    "ottla.sim.mutants",
    "ottla.sim.nemesis",
    "ottla.sim.plugins.own",
    "ottla.sim.run",
    "ottla.sim.settings.link_times",
    "ottla.sim.settings.ranges",
    "ottla.sim.settings.settings",
    "ottla.sim.settings.spans",
    "ottla.sim.settings.spelling",
    "ottla.sim.settings.situations",
    "ottla.sim.settings.swarm",
    "ottla.sim.settings.told",
    "ottla.sim.tracing",
    "ottla.sim.world.batch",
    "ottla.sim.world.clocks",
    "ottla.sim.world.decoder",
    "ottla.sim.world.disks",
    "ottla.sim.world.client_host",
    "ottla.sim.world.final_logs",
    "ottla.sim.world.frames",
    "ottla.sim.world.listener",
    "ottla.sim.world.value_call",
    "ottla.sim.world.in_sync_model",
    "ottla.sim.world.kernel",
    "ottla.sim.world.life",
    "ottla.sim.world.log_view",
    "ottla.sim.world.log_watch",
    "ottla.sim.world.making",
    "ottla.sim.world.metadata_watch",
    "ottla.sim.world.network",
    "ottla.sim.world.observer",
    "ottla.sim.world.order_of_checks",
    "ottla.sim.world.outcomes",
    "ottla.sim.world.points",
    "ottla.sim.world.producer_ids",
    "ottla.sim.world.one_state_model",
    "ottla.sim.world.reference_model",
    "ottla.sim.world.remnants",
    "ottla.sim.world.request_watch",
    "ottla.sim.world.submitted",
    "ottla.sim.world.tcp",
    "ottla.sim.world.witness",
    "ottla.sim.world.world",
)
"""Prefixes of the names of modules that decide: plugins, and all that a run imports (`tests/tidy`
checks it), except the judges in `ottla.sim.invariants` and `ottla.sim.specification`, which may ask
*any* member of a set for something."""


class RefusedError(RuntimeError):
    """Something was asked for whose outcome no seed decides."""


def refusal(what: str) -> RefusedError:
    """The exception of a run in the kernel."""
    return RefusedError(f"{what} is refused in a simulated run, at {call_site()}")


def call_site() -> str:
    """Where the program asked: the innermost frame that belongs neither to Ottla nor to a
    library."""
    frame = currentframe()
    while frame is not None and _passes_on(frame):
        frame = frame.f_back
    if frame is None:
        return "an unknown place"
    code = frame.f_code
    return f"{code.co_filename}:{frame.f_lineno} in {code.co_qualname}"


def _passes_on(frame: FrameType) -> bool:
    module = frame.f_globals.get("__name__", "")
    return module.startswith(_OURS) or _top(frame) in _BETWEEN


@contextmanager
def refused(
    refuse: Callable[[str], Exception] = refusal,
    guarded: Sequence[tuple[Any, tuple[str, ...]]] = (*GUARDED, *MACHINE),
) -> Iterator[None]:
    """Refuse the outside world until the end. `refuse` makes the exception from the name of what
    was asked for."""
    instead: dict[int, Any] = {id(kind): _clockless(refuse, kind) for kind in (date, datetime)}
    with ExitStack() as stack:
        for owner, names in guarded:
            for name in names:
                if hasattr(owner, name):
                    guard = _guard(refuse, owner, name)
                    instead[id(getattr(owner, name))] = guard
                    replace(stack, owner, name, guard)
        replace(stack, random.Random, "seed", _seeded(refuse))
        for module in _deciding():
            held = vars(module)
            if instead.keys().isdisjoint(map(id, held.values())):
                continue  # nearly all, in every run: five times as fast as checking each name
            for name, value in list(held.items()):
                if id(value) in instead:
                    replace(stack, module, name, instead[id(value)])
        yield


def _deciding() -> Iterator[ModuleType]:
    for name, module in list(sys.modules.items()):
        if name.startswith(DECIDING) and module is not None:
            yield module


class _Date(type):
    """A class for which any date or time is an instance."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.__mro__[1])


def _clockless(refuse: Callable[[str], Exception], kind: type[date]) -> type:
    """`date` or `datetime`, without what reads the clock."""

    def refusing(name: str) -> Any:
        def read(*_: object, **__: object) -> Any:
            raise refuse(f"{kind.__name__}.{name}")

        return staticmethod(read)

    def make(_: type[date], *args: Any, **options: Any) -> date:
        return kind(*args, **options)

    asks = {name: refusing(name) for name in ("now", "today", "utcnow") if hasattr(kind, name)}
    return _Date(kind.__name__, (kind,), {"__new__": make, **asks})


@contextmanager
def ordered() -> Iterator[None]:
    """Refuse to list sets in deciding code until the end."""
    with ExitStack() as stack:
        for module in _deciding():
            # The names stay in the module: adding or removing a name makes Python drop its caches
            # of global names for every function there, in every run.
            vars(module).setdefault("set", set)
            vars(module).setdefault("frozenset", frozenset)
            replace(stack, module, "set", MembersOnly)
            replace(stack, module, "frozenset", FrozenMembersOnly)
        yield


def _unlisted(self: object) -> Any:
    """Replaces what gives members in some order."""
    raise refusal(f"going through a {type(self).__mro__[1].__name__}, which has no order,")


_MAKES = (
    *("copy", "union", "difference", "intersection", "symmetric_difference"),
    *("__or__", "__sub__", "__and__", "__xor__", "__ror__", "__rsub__", "__rand__", "__rxor__"),
)
"""Methods of sets that return a new set."""


def _keeping(kind: type[_Set]) -> type[_Set]:
    """Make the methods of a class of sets return sets of that class."""
    for name in _MAKES:
        setattr(kind, name, _kept(kind, getattr(kind.__mro__[1], name)))
    return kind


def _kept(kind: type[Any], plain: Callable[..., Any]) -> Callable[..., Any]:
    def make(self: Any, *others: Any) -> Any:
        made = plain(self, *others)
        return made if made is NotImplemented else kind(made)

    return make


@_keeping
class MembersOnly(set[Any]):
    """A set that does not list its members, nor return any of them."""

    __iter__ = _unlisted
    pop = _unlisted


@_keeping
class FrozenMembersOnly(frozenset[Any]):
    """The same, frozen."""

    __iter__ = _unlisted


_MISSING = object()


def replace(stack: ExitStack, owner: Any, name: str, instead: Any) -> None:
    """Let a name of a module or class stand for something else until `stack` ends."""
    before = vars(owner).get(name, _MISSING)

    def back() -> None:
        if before is _MISSING:
            delattr(owner, name)
        else:
            setattr(owner, name, before)

    stack.callback(back)
    setattr(owner, name, instead)


def _guard(refuse: Callable[[str], Exception], owner: Any, name: str) -> Callable[..., Any]:
    real = getattr(owner, name)
    thread = threading.get_ident()
    what = f"{owner.__name__}.{name}"
    least = READS_THE_CLOCK_AFTER.get(name) if owner is time else None

    def guard(*args: Any, **options: Any) -> Any:
        told = least is not None and sum(each is not None for each in args) > least
        if told or threading.get_ident() != thread or _tolerated():
            return real(*args, **options)
        raise refuse(what)

    return guard


def _seeded(refuse: Callable[[str], Exception]) -> Callable[..., None]:
    """`random.Random.seed`, which refuses to run without a seed."""
    real, thread = random.Random.seed, threading.get_ident()

    def seed(self: random.Random, a: Any = None, version: int = 2) -> None:
        if a is None and threading.get_ident() == thread and not _tolerated():
            raise refuse("random.Random() without a seed")
        real(self, a, version)

    return seed


def _tolerated() -> bool:
    """Whether the caller only watches, also by way of a library of files."""
    frame = currentframe()
    for _ in range(2):  # Skips this function and the guard that calls it.
        frame = frame and frame.f_back
    while frame is not None and _top(frame) in _FILES:
        frame = frame.f_back
    return frame is not None and _top(frame) in TOLERATED


def _top(frame: FrameType) -> str:
    """The package that the frame's code belongs to."""
    name: str = frame.f_globals.get("__name__", "")
    return name.partition(".")[0]
