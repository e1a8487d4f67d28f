"""Recordings: what a broker answered, kept as files, so that it can be compared when it is gone.

A folder has `broker.json` (who was recorded, and the versions it serves) and a JSON file for each
case, with the bytes of each request and answer; a large one is packed (`NAME.json.gz`). A recording
of a case that has changed since is refused, because the requests are compared byte for byte; only
correlation ids may differ.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

from ottla.compare.case import MOST_NODES, Case, Outcome, Raw, Request
from ottla.compare.errors import CompareError, UnplayableError
from ottla.compare.requests import Situation, Versions, frame_of, with_correlation_id
from ottla.compare.transcript import Reply, Transcript, reply_to, resolver

BROKER_FILE = "broker.json"
LARGE = 1 << 16
"""Characters from which on a recording is packed: requests of a megabyte are mostly one byte."""


def record_broker(folder: Path, name: str, versions: Versions) -> None:
    """Write who is recorded. Raises `OSError`."""
    folder.mkdir(parents=True, exist_ok=True)
    served = {str(key): list(versions[key]) for key in sorted(versions)}
    told = {"broker": name, "versions": served}
    (folder / BROKER_FILE).write_text(json.dumps(told) + "\n", encoding="utf-8")


def record(folder: Path, played: Transcript) -> None:
    """Write one case. Raises `OSError`."""
    path = folder / f"{played.case}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    replies = [
        {
            "step": each.step,
            "outcome": each.outcome.value,
            "took": each.took,
            "request": each.request.hex(),
            "response": None if each.response is None else each.response.hex(),
        }
        for each in played.replies
    ]
    told = {"now": played.now, "names": dict(played.names), "replies": replies}
    text = json.dumps(told, indent=1) + "\n"
    if len(text) < LARGE:
        _packed(path).unlink(missing_ok=True)
        path.write_text(text, encoding="utf-8")
    else:
        path.unlink(missing_ok=True)
        _packed(path).write_bytes(gzip.compress(text.encode(), mtime=0))


def _packed(path: Path) -> Path:
    return path.with_name(f"{path.name}.gz")


class RecordedBroker:
    """A broker that answers what was recorded; see the module's docstring."""

    profile = ""
    nodes = MOST_NODES
    does_faults = True
    """It answers whatever was recorded."""

    def __init__(self, folder: Path):
        self._folder = folder
        told = _read(folder / BROKER_FILE)
        self.name = f"{folder.resolve().name} (recorded)"
        """The folder's: where the broker was when it was recorded says nothing."""
        self._versions = _value(
            folder / BROKER_FILE,
            lambda: {int(key): (int(a), int(b)) for key, (a, b) in told["versions"].items()},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing was opened."""

    def versions(self) -> Versions:
        """The versions that were served."""
        found: Versions = self._versions
        return found

    def play(self, case: Case, versions: Versions) -> Transcript:
        """What was answered. Raises `UnplayableError` if this case was not recorded: the broker
        that was may have refused its topic."""
        path = self._folder / f"{case.name}.json"
        if not (path.exists() or _packed(path).exists()):
            what = "this case needs a cluster of its own, and" if case.own_cluster else "this case"
            raise UnplayableError(f"{what} was not recorded")
        told = _read(path)
        found: Transcript = _value(path, lambda: self._transcript(case, versions, told))
        return found

    def play_all(
        self, cases: Sequence[Case], versions: Versions, like: Sequence[Transcript] = ()
    ) -> list[Transcript]:
        """What was answered to several; `like` is only looked at where requests are sent."""
        return [self.play(each, versions) for each in cases]

    def _transcript(self, case: Case, versions: Versions, told: Any) -> Transcript:
        now, names = int(told["now"]), dict(told["names"])
        replies: dict[int, Reply] = {}
        situation = Situation(versions, names, now, resolver(case, replies))
        steps = {each.number: each for each in case.steps}
        for each in told["replies"]:
            step = steps[each["step"]]
            request = bytes.fromhex(each["request"])
            if not _same(step.ask, request, situation):
                raise CompareError(f"{case.name} has changed since it was recorded: record it anew")
            response = None if each["response"] is None else bytes.fromhex(each["response"])
            outcome, took = Outcome(each["outcome"]), float(each["took"])
            replies[step.number] = reply_to(
                step, outcome, request, response, took=took, versions=versions
            )
        return Transcript(case.name, self.name, now, names, versions, tuple(replies.values()))


def _same(ask: object, request: bytes, situation: Situation) -> bool:
    if isinstance(ask, Raw):
        return ask.data == request
    assert isinstance(ask, Request)
    made = frame_of(ask, 0, situation)
    return made == with_correlation_id(request, 0)


def _read(path: Path) -> Any:
    try:
        packed = _packed(path)
        if packed.exists():
            return json.loads(gzip.decompress(packed.read_bytes()))
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CompareError(f"{path}: there is no such recording; make it with --record") from None
    except OSError as error:
        raise CompareError(f"{path}: {error.strerror or error}") from None
    except (ValueError, RecursionError, EOFError, zlib.error) as error:
        raise CompareError(
            f"{path}: is no recording ({error}); make it anew with --record"
        ) from None


def _value(path: Path, read: Callable[[], Any]) -> Any:
    try:
        return read()
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        told = f"{type(error).__name__}: {error}"
        raise CompareError(
            f"{path}: is no recording ({told}); make it anew with --record"
        ) from None
