"""What profiles in which a producer has one state for all epochs may do, and the reference may not.

Such a broker promises less (docs/reference/profiles.md), and what follows is no failure, but the
verdict says so: weakened. An anomaly about a producer is explained only if the history shows why a
leader may have known no better:

* **Epochs.** Leaders judged batches of two epochs of that producer: the older one is not fenced,
  and the newer one wiped what was known (RP-ONE-STATE).
* **Hydrated.** A node judged a batch of that producer after it had got another replica's snapshot,
  which brings no producers (RP-RAFT-SNAPSHOT).
* **Restarted.** A node judged one in a later life than that in which it took a snapshot: what lay
  below the log start is forgotten.

Whether a leader then decided rightly is judged by the reference model (sim-I35), and what it must
still know by sim-I27: neither is ever explained. A copy that a client made in a new epoch (sim-I34)
is not explained by that epoch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet

from ottla.broker.profiles.profile import Profile
from ottla.sim.invariants.decisions import MODEL_NODE
from ottla.sim.invariants.findings import Anomaly, Row
from ottla.sim.invariants.index import Index

EPOCHS = "a producer has one state for all its epochs"
HYDRATED = "another replica's snapshot brings no producers"
RESTARTED = "a restart forgets what is below the log start"
_OF_EPOCHS = frozenset({"sim-I02", "sim-I03", "sim-I04", "sim-I05", "sim-I36"})
_OF_FORGETTING = _OF_EPOCHS | {"sim-I34"}


def of_one_state(
    profile: Profile, index: Index, anomalies: Iterable[Anomaly]
) -> tuple[list[str], list[Anomaly]]:
    """Which of these anomalies the profile may lead to, a sentence each, and those that it may
    not."""
    told, left = list[str](), list[Anomaly]()
    if not profile.rulebook.newer_epoch_wipes:
        return told, list(anomalies)
    judged: dict[tuple[int, int], list[Row]] = {}
    by_eid = {row.eid: row for rows in index.rows.values() for row in rows}
    for row in index.rows["decide"]:
        if row.node != MODEL_NODE:
            judged.setdefault((row.partition, row.pid), []).append(row)
    for each in anomalies:
        why = None
        if each.invariant in _OF_FORGETTING:
            row = by_eid[each.eid]
            asked = [a for a in judged.get((row.partition, row.pid), ()) if a.eid < each.eid]
            why = _reason(index, {each.invariant}, asked)
        if why is None:
            left.append(each)
        else:
            told.append(f"{why}, so {each}")
    return [*told, *_deleted_copies(index, judged)], left


def _deleted_copies(index: Index, judged: dict[tuple[int, int], list[Row]]) -> Iterator[str]:
    """Batches that were stored again when their first copy was deleted: no invariant sees both."""
    first: dict[tuple[int, ...], Row] = {}
    told: set[tuple[int, ...]] = set()
    for row in index.rows["apply"]:
        if row.pid is None or row.pid < 0:
            continue
        batch = row.partition, row.pid, row.epoch, row.seq, row.seq_last
        before: Row = first.setdefault(batch, row)
        if before.log_index >= row.log_index or batch in told:
            continue
        asked = [a for a in judged.get(batch[:2], ()) if a.eid < row.eid]
        why = (
            _reason(index, _OF_EPOCHS, asked) if index.deleted(row.partition, before.off) else None
        )
        if why is not None:
            told.add(batch)
            yield (
                f"{why}, so sequence {row.seq} of producer {row.pid}, epoch {row.epoch}, which was "
                f"at the deleted offset {before.off} of partition {row.partition}, is stored again"
            )


def _reason(index: Index, broken: AbstractSet[str], asked: list[Row]) -> str | None:
    """Why leaders may have known no better when they judged these batches of one producer."""
    if broken & _OF_EPOCHS and len({row.epoch for row in asked}) > 1:
        return EPOCHS
    for snapshot in index.rows["snapshot"]:
        for row in asked:
            where = (row.partition, row.node) == (snapshot.partition, snapshot.node)
            if where and snapshot.eid < row.eid:
                if snapshot.code == "installed":
                    return HYDRATED
                if row.inc > snapshot.inc:
                    return RESTARTED
    return None
