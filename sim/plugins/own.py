"""What a user adds to the simulator, in a Python file of their own (`--plugin FILE`).

A decorator makes a function of that file part of the simulator. The docstring of the function says
in one sentence what it is for.

| decorator | what the function is given | what it does |
|---|---|---|
| `invariant` | the `Index` of a finished history | yields a row and a text for each violation |
| `fault` | a `FaultContext` | brings a fault about now, and undoes it later |
| `mutant` | `replace(owner, name, instead)` | switches a mechanism off for the length of a run |
| `client` | a `Visit` (`sim/clients/visits.py`) | sends any requests to the nodes |
| | on a class: a `Producer` | sends records, if the setting `client_model` names it |

A run has the plugins that its setting `plugins` names. The setting has the name of the file and a
hash of its text, so a tape, the folder of a sweep and another process mean the same plugin. An
invariant changes nothing in a run. Faults and clients change it, but everything that they pick
comes from the run's choices, so a seed replays. Ids begin with `my-`; no id of Ottla's does.

This module holds what was loaded; `files.py` reads the files. Rooms above ask `added` for the
plugins of their kind in a run. If the setting names no plugin, that costs nothing.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from types import FunctionType, TracebackType
from typing import Any, NamedTuple, TypeAlias, TypeVar

from ottla.broker.errors import ConfigError
from ottla.sim.chance.outside import replace

PREFIX = "my-"
"""Begins the id of everything that a plugin adds; no id of Ottla's begins so."""
MODULE = "ottla_plugin_"
"""Begins the name of the module that a file is loaded as."""
ENTRIES = "__ottla__"
"""The name of the list in such a module to which decorators add their functions."""
_ID = re.compile(r"my-[a-z0-9]+(-[a-z0-9]+)*")

Settings: TypeAlias = Mapping[str, int | str | bool]
Replace: TypeAlias = Callable[[Any, str, Any], None]
"""The argument of a mutant: it replaces the attribute `name` of a class or module."""
Function = TypeVar("Function", bound=Callable[..., object])


class PluginError(ConfigError):
    """A plugin cannot be used, or is missing; the text says why in one line."""


@dataclass(frozen=True, slots=True)
class Own:
    """What a file adds: one function."""

    id: str
    says: str
    """The first paragraph of its docstring, in one line."""
    function: Callable[..., Any]


class OwnInvariant(Own):
    """Yields a row and a text for each place where it does not hold; only the first one counts."""


@dataclass(frozen=True, slots=True)
class OwnFault(Own):
    """A program of the nemesis."""

    nodes: int = 1
    """Fewest nodes with which it makes sense."""


@dataclass(frozen=True, slots=True)
class OwnMutant(Own):
    """The broker without one mechanism; `says` names that."""

    settings: Settings = field(default_factory=dict)
    """The settings under which its mechanism matters (`ottla sim mutants`)."""
    why: str = ""
    """Why these settings."""


class OwnClient(Own):
    """A client besides the producers and consumers of a run."""


class OwnProducer(Own):
    """A class of producers, for example one derived from Java's or librdkafka's."""


AnyOwn = TypeVar("AnyOwn", bound=Own)


class Plugin(NamedTuple):
    """A file that was loaded."""

    key: str
    """Its name and a hash of its text, `mine.py:0123456789abcdef`, as in the setting `plugins`."""
    entries: tuple[Own, ...]

    @property
    def name(self) -> str:
        """The name of the file, without its folder."""
        return self.key.partition(":")[0]


LOADED: dict[str, Plugin] = {}
"""The plugins of this process, by key."""


# ---- decorators


def invariant(id_: str) -> Callable[[Function], Function]:
    """This function also judges each run, at its end, unless the run ends early. Raises
    `PluginError`."""
    return _adding(OwnInvariant, id_)


def fault(id_: str, *, nodes: int = 1) -> Callable[[Function], Function]:
    """The nemesis draws this fault, too. `nodes`: the fewest nodes with which it makes sense.
    Raises `PluginError`."""
    return _adding(OwnFault, id_, nodes=nodes)


def mutant(
    id_: str, *, settings: Settings | None = None, why: str = "as any seed draws them"
) -> Callable[[Function], Function]:
    """The setting `mutants` may name this mutant. `ottla sim mutants` sweeps it under `settings`;
    `why` is the reason for them. Raises `PluginError`."""
    return _adding(OwnMutant, id_, settings=settings or {}, why=why)


def client(id_: str) -> Callable[[Function], Function]:
    """This function is called when the load of a run begins. Or, on a class: the setting
    `client_model` may name this class of producers. Raises `PluginError`."""
    return _adding(OwnClient, id_)


def _adding(kind: type[Own], id_: str, **options: Any) -> Callable[[Function], Function]:
    if not isinstance(id_, str):  # a decorator without brackets: this is the decorated function
        raise PluginError(f"{getattr(id_, '__name__', id_)} has no id; write one in brackets")
    if not _ID.fullmatch(id_):
        raise PluginError(
            f"{id_!r} is no id; write {PREFIX}, then words of small letters and digits with a - "
            "between them"
        )

    def add(function: Function) -> Function:
        made, within = kind, getattr(function, "__globals__", {})
        if kind is OwnClient and isinstance(function, type):
            made, within = OwnProducer, vars(sys.modules[function.__module__])
        elif not isinstance(function, FunctionType):
            raise PluginError(f"{id_}: decorate a function, not {function!r}")
        says = " ".join((function.__doc__ or "").strip().partition("\n\n")[0].split())
        if not says:
            raise PluginError(f"{id_}: {function.__name__} has no docstring; say what it is for")
        entries: list[Own] = within.setdefault(ENTRIES, [])
        if any(each.id == id_ for each in entries):
            raise PluginError(f"{id_} is there twice; {function.__name__} needs another id")
        entries.append(made(id_, says, function, **options))
        return function

    return add


# ---- what a run has


def added(told: str, kind: type[AnyOwn]) -> tuple[AnyOwn, ...]:
    """Everything of one kind that the plugins in this setting add. Raises `KeyError` for a plugin
    that is not loaded; settings are checked before."""
    if not told:
        return ()
    entries = (each for key in told.split() for each in LOADED[key].entries)
    return tuple([each for each in entries if isinstance(each, kind)])


@contextmanager
def switched_off(ids: str, told: str) -> Iterator[None]:
    """Inside the context, the broker lacks the mechanisms of the plugins' mutants in `ids`."""
    off = [each for each in added(told, OwnMutant) if each.id in ids.split()]
    with replacing() as instead:
        for each in off:
            each.function(instead)
        yield


@contextmanager
def replacing() -> Iterator[Replace]:
    """Inside the context, what is replaced stays replaced."""
    with ExitStack() as stack:
        yield partial(_replace, stack)


def _replace(stack: ExitStack, owner: Any, name: str, instead: Any) -> None:
    if not hasattr(owner, name):
        raise PluginError(f"{getattr(owner, '__name__', owner)} has no {name} to replace")
    replace(stack, owner, name, instead)


def plugin_in(error: BaseException) -> str:
    """The place in a plugin that an exception passed through: the file, and the innermost function
    of that file with its line. Empty if it passed through none."""
    found, trace = "", error.__traceback__
    while trace is not None:
        found = _place(trace) or found
        trace = trace.tb_next
    return found


def _place(trace: TracebackType) -> str:
    if not trace.tb_frame.f_globals.get("__name__", "").startswith(MODULE):
        return ""
    code = trace.tb_frame.f_code
    name = code.co_filename.replace("\\", "/").rpartition("/")[2]
    return f"plugin {name}, line {trace.tb_lineno} in {code.co_name}"
