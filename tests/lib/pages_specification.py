"""The page of the specification, from its table."""

from __future__ import annotations

from ottla.sim.specification.specification import TRANSITIONS

_HEAD = """\
# Specification

Written from `sim/specification/specification.py` by `tests/tidy/test_generated_pages.py`; do not
edit.

Histories of simulated runs are judged twice. The [invariants](invariants.md) say what must hold
of a whole run. The specification says of each single step whether it is allowed: *trace
validation*, which etcd-io/raft does with TLA+ (Validating Traces of Distributed Programs). It is
a second model of elections, replication, commits, truncation, snapshots, replicas in sync and
reads, small enough to be read in one go. It shares no code with the broker: an import contract
and a test see to that.

```
ottla sim validate 17
ottla sim validate --seeds 1000 --jobs 2 --set load_ms=1000 --set records=12
```

Every run is traced while it goes on, also in a sweep, and each step is checked at once. This makes
no choice, so it changes no run. A trace shows nodes from outside: their messages, what their disks
take and keep, and what clients ask and are told. The first step that is not allowed breaks sim-I52.
It does not end the run, because its consequences tell more than the step alone; steps after it are
not checked.

The first command runs a seed (or a tape), and the second many seeds. They print more than the one
line of sim-I52: the step, why it is not allowed, what the specification knew of the node, what is
allowed, where that is in the history (`ottla sim show`), and the verdict. Then come the commands to
run next. The status is 1 if a run has such a step.

A step that is not allowed is a bug: of the broker, or of the specification. It need not have done
harm in that run. So the specification notices some mistakes long before an invariant does: a vote
that leaves before it is durable, a commit by counting an old term, a gap that is refused without
proof.

## What it allows

A message may come late, twice or never. What comes widens what the node may do; what a node does
needs a reason in what came before. *vote?* is a request and *vote* its answer, and so on.

| event | allowed if | source |
|---|---|---|
"""
_TAIL = """
## What it leaves out

* **Time**, but for replicas in sync: leases on votes, check-quorum, time limits. Nothing has to
  happen at last, so a broker that does nothing breaks no rule. The invariants judge that.
* **What records say**: duplicates, sequences and the order of batches are those of the reference
  model (sim-I35). An entry is its term and a mark of its content here.
* **Questions by time, earliest offsets, leader epochs**; of readers' errors all but *out of
  range* beyond the log.
* **Groups that are deleted**, from the first node on that drops its log.
* **Faults that no Raft survives** (`lost-sync`, `old-copy`): such runs are
  not checked, and the command refuses them.
* **How many replicas are in sync** is known only between two bounds. Between them both answers
  are allowed. A node that is slow, or was frozen, is not judged for the lag time.
"""


def specification_page() -> str:
    """The whole page."""
    rows = [f"| {each.event} | {each.allowed} | {each.source} |\n" for each in TRANSITIONS]
    return _HEAD + "".join(rows) + _TAIL
