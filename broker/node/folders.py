"""Why a start on data folders is refused, and what the user can do.

The advice depends on how many folders are good. If a majority is good, everything that a quorum
ever acknowledged is there, and the cluster can run without the others. If not, nobody can tell what
was agreed, so the folders have to be brought back.

An emptied folder never counts as a new one. Its node has lost its votes and entries that it had
acknowledged, so it could vote for a leader that lacks committed entries. Only a membership change
could make it a voter again, and that does not exist yet (docs/decisions/0029-damaged-folders.md).
"""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ottla.broker.arguments.arguments import as_whole, items
from ottla.broker.arguments.spelling import shown
from ottla.broker.errors import ConfigError
from ottla.log.errors import DiskFullError, FolderInUseError, FormatError, StoreError
from ottla.raft.types import NodeId

OF_THE_PLACE = {
    errno.EACCES,
    errno.EDQUOT,
    errno.EFBIG,
    errno.ELOOP,
    errno.EMFILE,
    errno.ENAMETOOLONG,
    errno.ENFILE,
    errno.ENOSPC,
    errno.ENOTDIR,
    errno.EPERM,
    errno.EROFS,
}
"""System errors which mean that a folder cannot exist there or cannot be written."""


class DataFolderError(ConfigError):
    """The folder of `node` may not be used: damaged, lost, of another node or cluster, in use. The
    text names node and folder and says what to do. Nothing was started."""

    def __init__(self, text: str, node: int, folder: Path):
        super().__init__(text)
        self.node = node
        self.folder = folder


def check_left_out(
    without: object, nodes: Sequence[NodeId], folder: Path | None
) -> tuple[NodeId, ...]:
    """The nodes that a cluster of `nodes` on `folder` is to start without. Raises `ConfigError` if
    `without` is wrong, or leaves no majority."""
    named = items("without_nodes", without, "nodes")
    if named and folder is None:
        raise ConfigError("without_nodes leaves out folders of a data_dir; name one")
    numbers: dict[NodeId, None] = {}
    for each in named:
        node = as_whole(each)
        if node is None or node not in nodes:
            raise ConfigError(
                f"without_nodes: there is no node {shown(each)}; nodes are {_few(nodes)}"
            )
        if node in numbers:
            raise ConfigError(f"without_nodes names node {node} twice; name each node once")
        numbers[node] = None
    found = tuple(numbers)
    left = len(nodes) - len(found)
    if 2 * left <= len(nodes):
        raise ConfigError(
            f"without_nodes: {left} of {len(nodes)} nodes are not a majority; name fewer nodes"
        )
    return found


class Seen(NamedTuple):
    """What the folders of a cluster's nodes contain. They are judged together, so that one refusal
    names every bad folder, and its advice is complete."""

    folder: Path
    """The folder of the whole cluster."""
    total: int
    """How many nodes the cluster has."""
    without: Sequence[NodeId]
    """Nodes whose folders were not opened, because the cluster starts without them."""
    nodes: Sequence[NodeId]
    """The other nodes."""
    errors: Mapping[NodeId, Exception]
    """The errors of folders that cannot be opened."""
    ids: Mapping[NodeId, str]
    """The cluster id in each open folder; an empty folder is missing here."""
    sizes: Mapping[NodeId, str]
    """The number of nodes of the cluster, as each open folder has it."""
    holding: Collection[NodeId]
    """Nodes whose open folders contain groups."""
    note: str | None
    """The cluster id in the note of the whole folder. None: there is no note; empty: it cannot be
    read."""

    @property
    def cluster(self) -> str:
        """The id of the cluster: that of the note or, without one, that of most folders."""
        found = Counter(self.ids.values()).most_common(1)
        return self.note or (found[0][0] if found else "")

    @property
    def ours(self) -> list[NodeId]:
        """The nodes whose open folders belong to the cluster."""
        return [node for node, cluster in self.ids.items() if cluster == self.cluster]

    @property
    def good(self) -> list[NodeId]:
        """Those of `ours` that contain groups; if none does, all of `ours`."""
        return [node for node in self.ours if node in self.holding] or self.ours

    @property
    def used(self) -> bool:
        """Whether a cluster ran here before, so that an empty folder has lost its data."""
        return (
            bool(self.holding)
            or self.note is not None
            or any(map(_is_of_a_use, self.errors.values()))
        )

    def check(self) -> None:
        """Raise `ConfigError` if the cluster has another size, `DataFolderError` if a folder is
        bad."""
        sizes = [self.sizes[node] for node in self.ours if node in self.sizes]
        for size in sizes:
            if size == str(self.total):
                continue
            raise ConfigError(
                f"{self.folder} is of a cluster of {size} nodes, not of {self.total}; "
                f"the number of nodes of a cluster cannot change"
            )
        if any(map(self.wrong, self.nodes)):
            raise self.refusal()

    def refusal(self) -> DataFolderError:
        """The error that names every bad folder; there is one."""
        return refused(self, {node: text for node in self.nodes if (text := self.wrong(node))})

    def wrong(self, node: NodeId) -> str:
        """What is wrong with the folder of a node; empty if nothing is."""
        path = self.folder / f"node-{node}"
        if node in self.errors:
            return _told(node, path, self.errors[node])
        named = self.ids.get(node)
        if named is None:
            return f"node {node}: {path} is empty, though {self._though()}" if self.used else ""
        if named == self.cluster:
            return ""
        there = f"node-{self.good[0]}" if self.good else "the one that was here"
        return (
            f"node {node}: {path} is of another cluster ({named}) than {there} ({self.cluster}); "
            f"put back the folder that belongs there"
        )

    def _though(self) -> str:
        if self.good:
            return f"node-{self.good[0]} is not"
        if self.note == "":
            return "the cluster was used: its note, ottla.json, is there and cannot be read"
        return "the cluster was used"


def _is_of_a_use(error: Exception) -> bool:
    """Whether this error of a folder means that the folder was used by a cluster."""
    return isinstance(error, StoreError) and not isinstance(error, FolderInUseError | DiskFullError)


def refused(seen: Seen, told: Mapping[NodeId, str]) -> DataFolderError:
    """The error for bad folders. `told`: for each node, what is wrong with its folder."""
    node = next(iter(told))
    errors = [seen.errors.get(each) for each in told]
    if all(isinstance(error, FolderInUseError) for error in errors):
        advice = "Stop the process that uses it, or choose another folder"
    elif all(_unusable(error) for error in errors) or not seen.folder.exists():
        advice = "Repair that, or choose another folder"
    elif all(isinstance(error, FormatError) for error in errors):
        advice = "Put back the folder that belongs there, or choose another folder"
    else:
        advice = advise(list(told), seen.good, seen.total, seen.without)
    return DataFolderError(
        f"{'; '.join(told.values())}. {advice}", node, seen.folder / f"node-{node}"
    )


def _unusable(error: Exception | None) -> bool:
    """Whether the error is about the place (disk, path, rights) and not about the data."""
    full = isinstance(error, DiskFullError)
    return full or (isinstance(error, OSError) and error.errno in OF_THE_PLACE)


def _told(node: NodeId, folder: Path, error: Exception) -> str:
    reason = str(error)
    if isinstance(error, OSError):
        why = "it is not a folder" if error.errno == errno.EEXIST else error.strerror
        reason = f"{why or error} ({error.filename or 'its files'})"
    return f"node {node}, {folder}: {reason.removeprefix(f'{folder}: ').removesuffix('.')}"


def advise(
    bad: Sequence[NodeId], good: Sequence[NodeId], total: int, without: Sequence[NodeId] = ()
) -> str:
    """What the user can do about bad folders, at a start `without` some nodes; see the module's
    docstring."""
    one = len(bad) == 1
    back = f"bring the folder{'' if one else 's'} back as {'it was' if one else 'they were'}"
    back += " when the cluster last ran"
    if total == 1:
        return (
            f"There is no other copy of it: {back}, or start a new cluster in another data_dir, "
            f"which will be empty"
        )
    if 2 * len(good) > total:
        away = tuple(sorted({*bad, *without}))
        flags = " ".join(f"--without-node {node}" for node in away)
        return (
            f"The folders of nodes {_few(good)} are good, a majority of {total}, and hold all "
            f"records acknowledged with acks=all: {back}, or start without "
            f"{'it' if one else 'them'} (ottla up {flags}, in Python "
            f"Cluster(without_nodes={away})). Do not put an empty folder there"
        )
    copies = f"Good folders: {len(good)} of {total}"
    if without:
        copies += f" (not looked at: nodes {_few(without)}, left out)"
    return (
        f"{copies}. That is not a majority, so what was committed is not known: {back}, or start a "
        f"new cluster in another data_dir, which will be empty"
    )


def left_out(node: NodeId) -> str:
    """The message for a node that the cluster was started without."""
    return (
        f"node {node} was left out at the start, and the cluster runs without it; a later start "
        f"may have it again, with its old folder (an empty one waits for membership change)"
    )


def _few(nodes: Sequence[NodeId]) -> str:
    return ", ".join(map(str, nodes))
