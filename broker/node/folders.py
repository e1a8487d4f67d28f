"""Why a start on folders is refused, and what its user can do about it.

The advice hangs on how many copies are good. Where a majority of the nodes is, all that was ever
acknowledged by a quorum is there, and the cluster can go on without the others. Where none is, the
folders have to come back: who is short of a majority cannot tell what was agreed.

An emptied folder is never taken for a fresh one. Its node has forgotten its votes, and entries that
it has acknowledged: it could vote for a leader that lacks what it and another one had made
committed. Only a change of membership makes a new voter of it, and that is not built yet
(docs/decisions/0029-damaged-folders.md).
"""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from ottla.broker.arguments.arguments import as_whole, items
from ottla.broker.arguments.spelling import shown
from ottla.broker.errors import ConfigError
from ottla.log.errors import DiskFullError, FolderInUseError, FormatError
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
"""What the system says of a place where no folder can be, or be written."""


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
    """The nodes that a cluster of `nodes` on `folder` starts without, if it can. Raises
    `ConfigError`."""
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
            f"without_nodes: {left} of {len(nodes)} nodes are no majority; nothing could be decided"
        )
    return found


def refused(
    folder: Path, errors: Mapping[NodeId, Exception], good: Sequence[NodeId], total: int
) -> DataFolderError:
    """The error for nodes whose folders below `folder` cannot be opened; `good` are those of the
    `total` nodes whose folders can."""
    node = next(iter(errors))
    told = [_told(each, folder / f"node-{each}", error) for each, error in errors.items()]
    if all(isinstance(error, FolderInUseError) for error in errors.values()):
        advice = "End who uses it, or choose another folder"
    elif all(_unusable(error) for error in errors.values()) or not folder.exists():
        advice = "Mend that, or choose another folder"
    elif all(isinstance(error, FormatError) for error in errors.values()):
        advice = "Put back the folder that belongs there, or choose another folder"
    else:
        advice = advise(list(errors), good, total)
    return DataFolderError(f"{'; '.join(told)}. {advice}", node, folder / f"node-{node}")


def _unusable(error: Exception) -> bool:
    """Whether it is about the place and not about what lies there."""
    full = isinstance(error, DiskFullError)
    return full or (isinstance(error, OSError) and error.errno in OF_THE_PLACE)


def _told(node: NodeId, folder: Path, error: Exception) -> str:
    reason = str(error)
    if isinstance(error, OSError):
        why = "what lies there is no folder" if error.errno == errno.EEXIST else error.strerror
        reason = f"{why or error} ({error.filename or 'its files'})"
    return f"node {node}, {folder}: {reason.removeprefix(f'{folder}: ').removesuffix('.')}"


def advise(bad: Sequence[NodeId], good: Sequence[NodeId], total: int) -> str:
    """What to do about bad folders; see the module's text."""
    back = "bring the folder back as it was when the cluster last ran"
    if total == 1:
        return (
            f"There is no other copy of it: {back}, or start a new cluster in another data_dir, "
            f"without what was in this one"
        )
    if 2 * len(good) > total:
        flags = " ".join(f"--without-node {node}" for node in bad)
        return (
            f"The folders of nodes {_few(good)} are good, a majority of {total}, and hold all that "
            f"was acknowledged: {back}, or start without it (ottla up {flags}, in Python "
            f"Cluster(without_nodes={tuple(bad)})). An emptied folder is no way back"
        )
    copies = f"Only {len(good)} of {total} folders are good" if good else "No folder is good"
    return (
        f"{copies}, no majority, so that nobody can tell what was agreed: {back}, or start a new "
        f"cluster in another data_dir, without what was in this one"
    )


def left_out(node: NodeId) -> str:
    """What is said of a node that the cluster was told to start without."""
    return (
        f"node {node} was left out at the start, and the cluster runs on without it; its folder "
        f"may come back with a later start, an empty one in its place waits for membership change"
    )


def of_another_size(folder: Path, known: Mapping[NodeId, str], asked: str) -> str:
    """Why folders of a cluster of another size are refused; empty if there are none."""
    for size in known.values():
        if size != asked:
            return (
                f"{folder} is of a cluster of {size} nodes, not of {asked}; "
                f"a cluster keeps its nodes for life"
            )
    return ""


def of_another_cluster(
    folder: Path, known: Mapping[NodeId, str], told: str, total: int
) -> DataFolderError | None:
    """The error for folders of several clusters. `told` is the one that the folder of the whole
    cluster names; without one, most decide."""
    if not known:
        return None
    most = told or Counter(known.values()).most_common(1)[0][0]
    good = [node for node, cluster in known.items() if cluster == most]
    odd = [node for node, cluster in known.items() if cluster != most]
    if not odd:
        return None
    than = f"node-{good[0]} ({most})" if good else f"the one that was here ({most})"
    return DataFolderError(
        f"node {odd[0]}: {folder}/node-{odd[0]} is of another cluster ({known[odd[0]]}) than "
        f"{than}; put back the folder that belongs there. {advise(odd, good, total)}",
        odd[0],
        folder / f"node-{odd[0]}",
    )


def of_a_lost_folder(
    folder: Path, lost: Sequence[NodeId], good: Sequence[NodeId], total: int
) -> DataFolderError:
    """The error for nodes that hold nothing in a cluster that was used."""
    though = f"node-{good[0]} does" if good else "the cluster was used"
    return DataFolderError(
        f"node {lost[0]}: {folder}/node-{lost[0]} holds nothing, though {though}. "
        f"{advise(lost, good, total)}",
        lost[0],
        folder / f"node-{lost[0]}",
    )


def _few(nodes: Sequence[NodeId]) -> str:
    return ", ".join(map(str, nodes))
