"""The state of every replica: as a table for readers, and as data for the page's script.

The table shows the replicas after a scene. The script shows them after any moment: it gets their
state at the beginning of a scene, and the changes of each moment.

Entries are written `offset producer/epoch:sequences`; colour and title give the term. An entry at
or above the high watermark of its replica is marked `+`: it may still be cut. An entry is marked
`!` if another replica has a different one at the same place.

On a shortened page (`room.py`), what is equal on several nodes appears once, only some of many
producers are shown, and the script gets only those producers that changed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from ottla.raft.types import NodeId
from ottla.report.explain.diagram import colour
from ottla.report.explain.lanes import Lanes
from ottla.report.explain.scenes import Scene
from ottla.report.explain.words import batch
from ottla.report.page.document import table
from ottla.sim.recording.states import DOWN, Change, Known, Line

SHOWN = 10
"""How many entries at the end of a log are shown."""
KEPT = 24
"""How many entries before a scene the script gets: those that it shows, and some in reserve,
because entries may be cut."""


PRODUCERS = 12
"""How many producers a shortened page shows."""


def states(known: Mapping[NodeId, Known], title: str, chosen: Sequence[int] | None = None) -> str:
    """The table of all replicas. `chosen`: on a shortened page, the producers to show first."""
    before: dict[str, NodeId] | None = None if chosen is None else {}
    rows = "".join(_row(node, each, known, before, chosen) for node, each in known.items())
    producers = "producers: epoch, window as first-last@offset, + in flight"
    heads = ("node", "role", "#term", "#high watermark", "end of its log", producers)
    return table(heads, rows, caption=title, kind="states")


def _row(
    node: NodeId,
    known: Known,
    others: Mapping[NodeId, Known],
    before: dict[str, NodeId] | None,
    chosen: Sequence[int] | None,
) -> str:
    producers = _only(known.producers, chosen)
    told = "<br>".join(f"{pid}: {escape(said)}" for pid, said in sorted(producers.items()))
    if len(producers) < len(known.producers):
        more = len(known.producers) - len(producers)
        told += f"<br><span class='more'>and {more} more</span>"
    log = _log(known, others)
    if before is not None:
        log, told = (_once(each, node, before) for each in (log, told))
    return (
        f"<tr><th>{node}</th><td>{known.role}</td>"
        f"<td class='n'><span class='chip {colour(known.term)}'>{known.term}</span></td>"
        f"<td class='n'>{'' if known.role == DOWN else known.hw}</td>"
        f"<td class='log'>{log}</td><td class='producers'>{told}</td></tr>"
    )


def _once(told: str, node: NodeId, before: dict[str, NodeId]) -> str:
    """The text, or a reference to an earlier node with the same text."""
    first = before.setdefault(told, node)
    if first == node or not told:
        return told
    return f"<span class='more'>as on node {first}</span>"


def _only(
    producers: Mapping[int | str, str], chosen: Sequence[int] | None
) -> Mapping[int | str, str]:
    if chosen is None or len(producers) <= PRODUCERS:
        return producers
    kept = list(dict.fromkeys(each for each in (*chosen, *producers) if each in producers))
    return {pid: producers[pid] for pid in kept[:PRODUCERS]}


def producers_in(scene: Scene) -> Sequence[int]:
    """The producers in a scene, the last one first."""
    rows = [step.row for moment in scene.moments for step in moment.steps if step.row is not None]
    return list(dict.fromkeys(row.pid for row in reversed(rows) if row.pid is not None))


def _log(known: Known, others: Mapping[NodeId, Known]) -> str:
    shown = known.log[-SHOWN:]
    more = len(known.log) - len(shown)
    front = f"<span class='more'>{more} before</span> " if more else ""
    return front + " ".join(_entry(line, known, others) for line in shown)


def _entry(line: Line, known: Known, others: Mapping[NodeId, Known]) -> str:
    said = entry_text(line)
    open_ = line.off is not None and line.off >= known.hw
    differs = any(_otherwise(line, each) for each in others.values())
    marks = ("+" if open_ else "") + ("!" if differs else "")
    kinds = f"entry {colour(line.term)}{' open' if open_ else ''}{' differs' if differs else ''}"
    return (
        f"<span class='{kinds}' title='entry {line.log_index}, term {line.term}'>"
        f"{escape(said)}{marks}</span>"
    )


def entry_text(line: Line) -> str:
    """An entry as a short text."""
    if line.off is None:
        return f"(term {line.term})"
    who = batch(line.pid, line.epoch, line.seq, line.seq_last)
    return f"{line.off} {who if line.pid is not None else '-'}"


def _otherwise(line: Line, other: Known) -> bool:
    """Whether the other log has a different entry at the same place."""
    if not other.log:
        return False
    place = line.log_index - other.log[0].log_index
    return 0 <= place < len(other.log) and other.log[place].chain != line.chain


# ---- data for the script


def data(lanes: Lanes, scenes: Iterable[Scene], *, brief: bool = False) -> list[dict[str, Any]]:
    """For each scene, the state of each node at its beginning (`base`), and the changes by moment
    (`moments`). `brief`: for a shortened page."""
    told = []
    for scene in scenes:
        if not scene.moments:
            continue
        lanes.until(scene.moments[0].number - 1)
        base = {str(node): _known(known) for node, known in lanes.known.items()}
        shorter = _Shorter(base, producers_in(scene)) if brief else None
        moments: dict[str, list[Any]] = {}
        for moment in scene.moments:
            changes = [_change(each) for each in lanes.until(moment.last)]
            if shorter is not None:
                shorter.shorten(changes)
            moments[str(moment.number)] = changes
        if shorter is not None:
            base = shorter.base
        told.append({"base": base, "moments": moments})
    return told


class _Shorter:
    """Shortens the data of one scene for the script.

    In `base`, a log (or the producers) that equals that of an earlier node is replaced by the
    number of that node. In a change, `told` has the producers that changed, null for one that is
    gone. `skip` counts entries that were added before those in `add`; the script need not show
    them. `others` says that there are producers that are not in the data.
    """

    def __init__(self, base: Mapping[str, dict[str, Any]], chosen: Sequence[int]):
        self._chosen = chosen
        self._producers: dict[str, Mapping[int | str, str]] = {}
        self.base: dict[str, dict[str, Any]] = {}
        first: dict[str, str] = {}
        for node, known in base.items():
            kept = self._producers[node] = _only(known["producers"], chosen)
            others = len(kept) < len(known["producers"])
            short = {**known, "producers": kept, "others": others}
            for name in ("log", "producers"):
                alike = first.setdefault(as_json([name, short[name]]), node)
                if alike != node:
                    short[name] = alike
            self.base[node] = short

    def shorten(self, changes: Iterable[list[Any]]) -> None:
        """Shorten the changes of a moment, in place."""
        for node, change in changes:
            if "producers" in change:
                self._tell(str(node), change)
            if len(change.get("add", ())) > KEPT:
                change["skip"] = len(change["add"]) - KEPT
                change["add"] = change["add"][-KEPT:]

    def _tell(self, node: str, change: dict[str, Any]) -> None:
        whole = change.pop("producers")
        before, now = self._producers[node], _only(whole, self._chosen)
        self._producers[node] = now
        change["others"] = len(now) < len(whole)
        told: dict[int | str, str | None] = {pid: None for pid in before if pid not in now}
        told |= {pid: said for pid, said in now.items() if before.get(pid) != said}
        change["told"] = told


def as_json(value: Any) -> str:
    """The data as JSON that is safe in a script element."""
    return json.dumps(value, separators=(",", ":")).replace("</", "<\\/")


def _known(known: Known) -> dict[str, Any]:
    return {
        "role": known.role,
        "term": known.term,
        "hw": known.hw,
        "more": max(0, len(known.log) - KEPT),
        "log": [_line(line) for line in known.log[-KEPT:]],
        "producers": known.producers,
    }


def _line(line: Line) -> list[Any]:
    # The chain is only compared. For that, 32 bits are enough, and JavaScript keeps them exactly.
    return [line.log_index, line.off, line.term, entry_text(line), line.chain & 0xFFFFFFFF]


def _change(change: Change) -> list[Any]:
    told: dict[str, Any] = {
        name: value
        for name, value in (
            ("role", change.role),
            ("term", change.term),
            ("hw", change.hw),
            ("start", change.start),
            ("cut", change.cut),
            ("producers", change.producers),
        )
        if value is not None
    }
    if change.add:
        told["add"] = [_line(line) for line in change.add]
    return [change.node, told]
