"""What stands on every replica: as a table for readers, and as data for the page's script.

The table shows the replicas behind a scene. The script shows them behind any moment: it is given
what stood there when a scene began, and what each of its moments changed.

Entries are written `offset producer/epoch:sequences`, with the term as colour and in their title.
An entry above the high watermark of its replica is marked `+`: it may still be cut. One that other
replicas have otherwise at the same place is marked `!`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

from ottla.explain.diagram import colour
from ottla.explain.lanes import Lanes
from ottla.explain.scenes import Scene
from ottla.explain.words import batch
from ottla.raft.types import NodeId
from ottla.sim.recording.states import DOWN, Change, Known, Line

SHOWN = 10
"""Entries at the end of a log that are shown."""
KEPT = 24
"""Entries that the script is given from before a scene: it shows as many, and may see some cut."""


def states(known: Mapping[NodeId, Known], title: str) -> str:
    """The table of all replicas."""
    rows = "".join(_row(node, each, known) for node, each in known.items())
    return (
        f'<div class="scroll states"><table><caption>{escape(title)}</caption><thead><tr>'
        "<th>node</th><th>role</th><th class='n'>term</th><th class='n'>high watermark</th>"
        "<th>end of its log</th><th>producers: epoch, window as first-last@offset, + in flight</th>"
        f"</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _row(node: NodeId, known: Known, others: Mapping[NodeId, Known]) -> str:
    told = "<br>".join(f"{pid}: {escape(said)}" for pid, said in sorted(known.producers.items()))
    return (
        f"<tr><th>{node}</th><td>{known.role}</td>"
        f"<td class='n'><span class='chip {colour(known.term)}'>{known.term}</span></td>"
        f"<td class='n'>{'' if known.role == DOWN else known.hw}</td>"
        f"<td class='log'>{_log(known, others)}</td><td class='producers'>{told}</td></tr>"
    )


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
    """An entry in a few letters."""
    if line.off is None:
        return f"(term {line.term})"
    who = batch(line.pid, line.epoch, line.seq, line.seq_last)
    return f"{line.off} {who if line.pid is not None else '-'}"


def _otherwise(line: Line, other: Known) -> bool:
    """Whether that log has another entry at the same place."""
    if not other.log:
        return False
    place = line.log_index - other.log[0].log_index
    return 0 <= place < len(other.log) and other.log[place].chain != line.chain


# ---- data for the script


def data(lanes: Lanes, scenes: Iterable[Scene]) -> list[dict[str, Any]]:
    """Per scene what stood on each node (`base`), and changes by moment (`moments`)."""
    told = []
    for scene in scenes:
        if not scene.moments:
            continue
        lanes.until(scene.moments[0].number - 1)
        base = {str(node): _known(known) for node, known in lanes.known.items()}
        moments: dict[str, list[Any]] = {}
        for moment in scene.moments:
            changes = lanes.until(moment.last)
            moments[str(moment.number)] = [_change(each) for each in changes]
        told.append({"base": base, "moments": moments})
    return told


def as_json(value: Any) -> str:
    """Data that may stand in a script element."""
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
    # The chain is only compared; 32 bits of it are enough for that, and exact in a script.
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
