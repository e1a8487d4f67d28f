"""The rules as a page: `docs/reference/rules.md` is what this writes for every profile.

The first profile is shown with all its rows. Each other profile is shown with the rows in which it
differs from the most similar profile before it, because a reader wants to know the differences.
`tests/idempotency/test_rules_page.py` compares the two; with OTTLA_REWRITE=1 it writes the page.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ottla.broker.profiles.profile import Profile
from ottla.idempotency.rules import FACTS, IMPOSSIBLE, Fact, RejectReason, Row
from tidy.pages import wrapped

_HEAD = """\
# The rules of idempotent produce

This page is generated from `idempotency/rules.py`; `tests/idempotency/test_rules_page.py` compares
the two.

## Facts

A request is judged only by these facts. The *current* epoch and tail of a producer are those of its
newest request in flight in this leadership, or else of what has been applied.

| fact | holds when |
|---|---|
"""
_IMPOSSIBLE = """
## Impossible sets of facts

| facts | why |
|---|---|
"""
_READING = """
## How to read the rows

Exactly one row holds for every possible set of facts; the order of the rows has no meaning. Nothing
is stored before the batch is applied, and a refused batch never changes anything. *After a barrier*
means that the refusal is answered only after this leader has proved that it still leads.
"""
_ROWS = """
| row | holds when | decision | stored state | why | source |
|---|---|---|---|---|---|
"""
_SWITCHES = """
| switch | value |
|---|---|
"""


def rules_markdown(profiles: Sequence[Profile]) -> str:
    """The whole page, in Markdown, with a newline at the end. The first profile has all its rows,
    the others have those that replace rows of another profile."""
    first = profiles[0]
    parts = [
        _HEAD,
        *(f"| {_name(fact)} | {text} |\n" for fact, text in FACTS.items()),
        _IMPOSSIBLE,
        *(f"| {_condition(i.when, i.unless)} | {i.reason} |\n" for i in IMPOSSIBLE),
        _READING,
        *_section(first, first.summary, first.rulebook.rules),
    ]
    for number, profile in enumerate(profiles[1:], 1):
        rules = profile.rulebook.rules
        other = max(profiles[:number], key=lambda each: len({*each.rulebook.rules} & {*rules}))
        known = other.rulebook.rules
        gone = ", ".join(f"`{row.label}`" for row in known if row not in rules)
        text = f"{profile.summary} Its rows are those of `{other.name}`"
        text += f" without {gone}, and:" if gone else "."
        parts += _section(profile, text, [row for row in rules if row not in known])
    return "".join(parts)


def _section(profile: Profile, text: str, rows: Iterable[Row]) -> Iterator[str]:
    rulebook = profile.rulebook
    yield f"\n## Profile `{profile.name}`\n\n{wrapped(text)}\n"
    rows = list(rows)
    yield _ROWS if rows else ""
    yield from (_row(row, rulebook.gap_after_barrier) for row in rows)
    yield _SWITCHES
    yield f"| finished batches remembered per producer | {rulebook.window} |\n"
    for told, holds in (
        ("refusals that need it wait for a barrier", rulebook.gap_after_barrier),
        (
            "each epoch is remembered by itself, and batches by their last sequence",
            rulebook.epochs_apart,
        ),
        ("what was begun counts, whatever became of it", rulebook.begun_counts),
        (
            "a newer epoch wipes what is known of its producer; else epochs are not compared",
            rulebook.newer_epoch_wipes,
        ),
        ("a refusal stands after the barrier", rulebook.newer_epoch_wipes),
        ("a batch in flight takes the place of a finished one", rulebook.appended_counts),
        ("batches of epoch -1 have an order", rulebook.epoch_minus_one_ordered),
        ("a connection has one produce request under way", profile.one_stage),
        ("a connection has one request under way, of any kind", profile.one_at_a_time),
        ("of two batches for a partition in a request the last counts", profile.last_twin_counts),
        ("two batches for a partition in a request both count", profile.both_twins_count),
        ("acks=all and readers wait for all replicas in sync", profile.waits_for_all_in_sync),
        ("a producer is idle since the time of its last record", profile.expires_by_timestamp),
        ("a copy of a batch in flight keeps the mutex", profile.copies_keep_mutex),
        ("a leader resigns when a producer's batch fails", profile.resigns_on_failure),
        ("negative sequences are left to the rules", profile.negative_sequences_judged),
        ("a connection waits until all batches have their places", profile.first_stage_holds),
        ("answers to Produce have the base offset alone", profile.bare_produce_answers),
        ("acks are checked first, and not those of producers", profile.acks_checked_first),
        ("records of any time are stored", profile.times_unlimited),
        ("another replica's snapshot brings no producers", profile.installs_no_producers),
        ("a restart forgets batches below the log start", profile.keeps_from_log_start),
        ("times ahead have no limit of their own, segments 14 bytes", profile.before_kip_1030),
        ("a minimum above the number of replicas refuses acks=all", profile.minimum_uncapped),
        ("a batch may not say that it has its append's time", profile.append_time_flag_refused),
        ("ListOffsets knows the special times -1 and -2 only", profile.negative_times_searched),
        ("records that begin with no batch close the connection", profile.no_batch_closes),
        ("a batch that is dropped is not looked into", profile.earlier_twins_unread),
        ("only older versions of some APIs are served", bool(profile.newest)),
    ):
        yield f"| {told} | {'yes' if holds else 'no'} |\n"


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
    return f"| {' | '.join(cells)} |\n"


def _condition(when: Fact, unless: Fact) -> str:
    holding = [_name(fact) for fact in Fact if fact in when]
    missing = [f"not {_name(fact)}" for fact in Fact if fact in unless]
    return ", ".join(holding + missing)


def _name(fact: Fact) -> str:
    return str(fact.name).lower().replace("_", " ")
