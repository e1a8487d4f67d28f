"""The rules as a page: `docs/reference/rules.md` is what this writes for profile `reference`.

`tests/idempotency/test_rules_page.py` compares the two; with OTTLA_REWRITE=1 it writes the page.
"""

from __future__ import annotations

from ottla.idempotency.profiles import Profile
from ottla.idempotency.rules import FACTS, IMPOSSIBLE, Fact, RejectReason, Row

_HEAD = """\
# The rules of idempotent produce: profile `{name}`

This page is generated from `idempotency/rules.py`; `tests/idempotency/test_rules_page.py` compares
the two. {summary}

## Facts

A request is judged by these facts alone. The *current* epoch and tail of a producer are those of
its newest request in flight in this leadership, or else of what has been applied.

| fact | holds when |
|---|---|
"""
_ROWS = """
## Rows

Exactly one row holds for every possible set of facts; the order means nothing. Nothing is stored
before the batch is applied, and a refused one never changes anything. *After a barrier* means that
the refusal is answered only once this leader has proved that it still leads.

| row | holds when | decision | stored state | why | source |
|---|---|---|---|---|---|
"""
_IMPOSSIBLE = """
## Impossible sets of facts

| facts | why |
|---|---|
"""
_SWITCHES = """
## Switches

| switch | value |
|---|---|
"""


def rules_markdown(profile: Profile) -> str:
    """The whole page for one profile, in Markdown, with a newline at the end."""
    facts = [f"| {_name(fact)} | {text} |" for fact, text in FACTS.items()]
    rows = [_row(row, profile.gap_after_barrier) for row in profile.rules]
    impossible = [f"| {_condition(i.when, i.unless)} | {i.reason} |" for i in IMPOSSIBLE]
    switches = [
        f"| finished batches remembered per producer | {profile.window} |",
        f"| a parked duplicate holds its producer's mutex | {_word(profile.park_holds_mutex)} |",
        f"| refusals that need it wait for a barrier | {_word(profile.gap_after_barrier)} |",
    ]
    head = _HEAD.format(name=profile.name, summary=profile.summary)
    parts = (head, facts, _ROWS, rows, _IMPOSSIBLE, impossible, _SWITCHES, switches)
    return "".join(part if isinstance(part, str) else "\n".join(part) + "\n" for part in parts)


def _row(row: Row, barriers: bool) -> str:
    decision = row.decision.value
    if isinstance(row.decision, RejectReason):
        decision = f"Reject: {decision}" + (", after a barrier" if row.barrier and barriers else "")
    cells = (
        f"`{row.label}`",
        _condition(row.when, row.unless),
        decision,
        row.action.value,
        row.reason,
        row.source,
    )
    return f"| {' | '.join(cells)} |"


def _condition(when: Fact, unless: Fact) -> str:
    holding = [_name(fact) for fact in Fact if fact in when]
    missing = [f"not {_name(fact)}" for fact in Fact if fact in unless]
    return ", ".join(holding + missing)


def _name(fact: Fact) -> str:
    return str(fact.name).lower().replace("_", " ")


def _word(switch: bool) -> str:
    return "yes" if switch else "no"
