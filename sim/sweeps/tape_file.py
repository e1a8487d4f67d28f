"""A run on disk: its configuration and its tape, so that it can be replayed, cut down and sent.

One msgpack map: `{"ottla-tape": 3, "config": {name: value}, "taken": {stream: [[place, value]]},
"code": the code that wrote it, "check": hash of the three}`; version 2 has no code. A flipped bit
of a choice would give another run that also replays; the hash detects that. Anybody may have
written a tape that is read: any error in it raises a `TapeError` with one line.
"""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import msgpack

from ottla.broker.errors import ConfigError
from ottla.sim.chance.choices import Tape
from ottla.sim.machine.code_hash import code
from ottla.sim.machine.files import write_whole
from ottla.sim.plugins.files import as_chosen
from ottla.sim.settings.settings import RunConfig

VERSION = 3
_WITHOUT_CODE = 2
_KEY = "ottla-tape"
MOST_BYTES = 64 << 20
"""More than the tape of any run that ends within a day."""


class TapeError(Exception):
    """The bytes are no tape that this version can read."""


class Case(NamedTuple):
    """What is needed to replay a run."""

    config: RunConfig
    tape: Tape


class Kept(NamedTuple):
    """A tape's case, and the code that wrote it."""

    case: Case
    """With the plugins of this command, which have the names of those that were kept."""
    code: str
    """Hash of the code that wrote it; empty: it does not say."""
    plugins: str = ""
    """The plugins that were kept with it, as the setting names them."""


def encode(case: Case) -> bytes:
    """The bytes for `decode`; the same code gives equal bytes for equal cases."""
    taken = {
        name: [list(each) for each in sorted(places.items())]
        for name, places in sorted(case.tape.taken.items())
        if places
    }
    config = case.config.values()
    body = {_KEY: VERSION, "config": config, "taken": taken, "code": code()}
    packed: bytes = msgpack.packb(body | {"check": _check(body)})
    return packed


def decode(data: bytes) -> Kept:
    """The case that `encode` was given, and the code that wrote it. Raises `TapeError`."""
    try:
        body = msgpack.unpackb(data)
    except (ValueError, msgpack.UnpackException) as error:
        raise TapeError(f"not a tape, or a damaged one: {error}") from None
    if not isinstance(body, dict) or _KEY not in body:
        raise TapeError("not a tape: it does not say that it is one")
    if body[_KEY] not in (_WITHOUT_CODE, VERSION):
        raise TapeError(f"a tape of version {body[_KEY]}; this Ottla reads version {VERSION}")
    try:
        if body["check"] != _check(body):
            raise TapeError("a damaged tape: it is not what was written")
        told = body["config"]
        plugins = told.get("plugins", "")
        config = RunConfig().with_(**told | {"plugins": as_chosen(plugins)})
        taken = {name: _places(pairs) for name, pairs in body["taken"].items()}
        made_by = "" if body[_KEY] == _WITHOUT_CODE else str(body["code"])
    except ConfigError as error:
        raise TapeError(f"its configuration: {error}") from None
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise TapeError(f"a tape with something missing: {error!r}") from None
    return Kept(Case(config, Tape(taken)), made_by, plugins)


def _check(body: dict[str, Any]) -> bytes:
    """Sixteen bytes over what replays a run, and the code that wrote it."""
    told = [body["config"], body["taken"]]
    if body[_KEY] != _WITHOUT_CODE:
        told.append(body["code"])
    return blake2b(msgpack.packb(told), digest_size=16).digest()


def _places(pairs: Any) -> dict[int, int]:
    places = {place: value for place, value in pairs}  # noqa: C416 - checks that they are pairs
    for place, value in places.items():
        if not isinstance(place, int) or not isinstance(value, int) or place < 0 or value <= 0:
            raise ValueError(f"choice {value!r} at place {place!r}")
    return places


def read(path: Path) -> Kept:
    """A tape from a file. Raises `TapeError` and `OSError`."""
    with path.open("rb") as file:
        data = file.read(MOST_BYTES + 1)  # a device may have no end
    if len(data) > MOST_BYTES:
        raise TapeError(f"not a tape: it is larger than {MOST_BYTES >> 20} MiB")
    return decode(data)


def write(path: Path, case: Case) -> None:
    """A tape into a file, whole or not at all. Raises `OSError`."""
    write_whole(path, encode(case))
