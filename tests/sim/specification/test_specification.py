"""The specification as a whole: its table, its independence, and what it says of a wrong step.

Two properties are tried on a real trace: copies of messages change nothing, and a node that keeps
silent breaks no rule.
"""

import ast
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.sim.settings.settings import RunConfig
from ottla.sim.specification.specification import BY_EVENT, TRANSITIONS, check, name_of
from ottla.sim.specification.trace import ALL_GROUPS, Entry, Event, Message
from sim_traced import traced
from sim_traces import led
from tidy.source import repository

ROOM = repository() / "sim" / "specification"


def test_the_rows_of_the_table_differ_and_say_when_they_are_allowed():
    assert len(BY_EVENT) == len(TRANSITIONS)
    assert [each.event for each in TRANSITIONS if not (each.allowed and each.source)] == []


def test_the_room_imports_nothing_but_itself_and_the_standard_library():
    """A model that shares code with what it judges would share its bugs."""
    found = set()
    for path in ROOM.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                found.add(node.module or "")
            elif isinstance(node, ast.Import):
                found |= {each.name for each in node.names}
    own = {each for each in found if each.startswith("ottla.sim.specification")}
    assert found - own == {"__future__", "bisect", "collections", "collections.abc", "typing"}


def test_a_refusal_says_the_event_the_reason_the_state_and_what_is_allowed():
    message = Message("append", 2, 1, 1, log_index=3, yes=True)
    steps = [_start(1), Event("send", 2, 7, 5, message)]
    refusal = check(steps)
    assert refusal is not None
    assert refusal.lines("partition 0") == [
        "event 1: send node=2 group=7 append sender=2 to=1 term=1 log_index=3 yes=True",
        "node 2, partition 0: node 1 does not lead term 1",
        (
            "state before: wrote term 0, no vote, 0 entries, the last of term 0; durable term 0, no"
            " vote, 0 entries, the last of term 0; knows 0 committed, may know 0; heard of term 0"
        ),
        (
            "allowed: on success: that leader sent the entries, and the durable log is the leader's"
            " up to there (figure 2)"
        ),
    ]


def test_a_refusal_about_all_groups_names_the_member():
    group = led(Entry(1, 11))
    found = group.found(2, entries=1)
    steps = [*group.events, Event("start", 2, ALL_GROUPS, 99, (found,))]
    refusal = check(steps)
    assert refusal is not None
    assert refusal.event.group == 1
    assert refusal.number == len(steps) - 1


def test_entries_are_told_by_their_number_and_terms():
    entries = (Entry(1, 5), Entry(2, 6))
    event = Event("receive", 1, 7, 5, Message("append?", 2, 1, 2, entries=entries))
    assert (
        str(event) == "receive node=1 group=7 append? sender=2 to=1 term=2 entries=2 of term 1, 2"
    )


@pytest.mark.slow
@settings(max_examples=25)
@given(st.data())
def test_messages_may_come_twice_and_late(data):
    """A message only widens what a node may do, so no copy of one makes a correct run wrong."""
    events, rules = _run()
    received = [place for place, each in enumerate(events) if each.kind == "receive"]
    copied = data.draw(st.sampled_from(received))
    later = data.draw(st.integers(copied, len(events)))
    started = any(
        each.kind == "start" and each.node == events[copied].node for each in events[copied:later]
    )
    if not started:  # else it would come to another life
        copy = events[copied]._replace(at=events[later - 1].at if later else 0)
        assert check([*events[:later], copy, *events[later:]], rules) is None


@pytest.mark.slow
@settings(max_examples=25)
@given(st.data())
def test_a_node_that_does_not_send_or_answer_breaks_no_rule(data):
    events, rules = _run()
    silent = [
        place
        for place, each in enumerate(events)
        if each.kind == "send" and name_of(each) not in {"send append?", "send heartbeat?"}
    ]
    left_out = data.draw(st.sets(st.sampled_from(silent), max_size=9))
    assert check((e for place, e in enumerate(events) if place not in left_out), rules) is None


def _start(node):
    return Event("start", node, ALL_GROUPS, 0, ())


@cache
def _run():
    return traced(8, RunConfig(load_ms=1_000, records=12))
