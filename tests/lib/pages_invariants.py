"""The invariants as a page: `docs/reference/invariants.md` is what this writes.

`tests/sim/invariants/test_page.py` compares the two; with OTTLA_REWRITE=1 it writes the page.
"""

from __future__ import annotations

from ottla.sim.invariants.mutants import CheckerMutant
from ottla.sim.invariants.registry import INVARIANTS, WAITING
from ottla.sim.invariants.resent import Cause

_HEAD = """\
# Invariants

This page is generated from `sim/invariants/registry.py`; `tests/sim/invariants/test_page.py`
compares the two.

A simulated run is judged only by its history (`sim/history/history.py`). Each invariant is written
twice, in Python over the rows of one run, and as SQL over the rows of any number of runs
(`sim/invariants/sql/`). Both give the same verdict on every labelled history in
`tests/sim/invariants/histories/`. *Online* invariants are judged during the run, which may end at
the first hit. *Measured* is a figure, not a verdict.

The *canonical log* of a partition is the committed part of the log that reaches furthest. Only
acks=all promises that a record stays. Records that acks=1 and acks=0 lose are counted in the loss
table, with the reason. Idempotence is promised to records with a producer id, within an epoch.

| id | when it does not hold | what must hold | judged |
|---|---|---|---|
"""
_OF_NODES = """
There is also sim-I00: a node or a client broke a rule of its own, such as an assertion. It is
[raised, not judged from rows](../explanation/simulation.md#one-run), so it has no SQL.
"""
_WAITING = """
## Not yet

| id | |
|---|---|
"""
_COPIES = """
## Why a record is in the log twice

sim-I34 gives every copy of a record a cause (`sim/invariants/resent.py`).

| cause | | whose fault |
|---|---|---|
"""
_MUTANTS = """
## Broken checkers

Each of these breaks the checkers on purpose, and the labelled histories notice
(`tests/sim/invariants/test_mutants.py`).

| mutant | |
|---|---|
"""


def invariants_markdown() -> str:
    """The whole page, in Markdown, with a newline at the end."""
    parts = [_HEAD]
    parts += [f"| {i.id} | {i.name} | {i.says} | {i.place.value} |\n" for i in INVARIANTS]
    parts += [
        _OF_NODES,
        _WAITING,
        *(f"| {name} | {why} |\n" for name, why in WAITING.items()),
        _COPIES,
    ]
    for cause in Cause:
        whose = "the broker's" if cause.fault else "nobody's, or its client's"
        parts.append(f"| `{cause.name}` | {cause.value} | {whose} |\n")
    parts.append(_MUTANTS)
    for mutant in CheckerMutant:
        name, _, text = mutant.value.partition(": ")
        parts.append(f"| {name} `{mutant.name}` | {text} |\n")
    return "".join(parts)
