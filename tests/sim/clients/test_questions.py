"""Questions of readers: what is asked, what the history is told of the answer, what follows it.

A world whose log has three records is asked question by question: each answer is known beforehand.
What a run asks is drawn; of it only what kinds of rows come of it is looked at, and that a mutant
is noticed.
"""

import pytest

from ottla.broker.errors import ErrorCode
from ottla.log.build import build_batch
from ottla.sim.chance.choices import Drawn
from ottla.sim.clients.questions import ASKED_A_RUN, ASKER, Asker, Question
from ottla.sim.clients.sequential import SequentialClient
from ottla.sim.mutants.catalogue import BY_ID
from ottla.sim.run import run
from ottla.sim.settings.settings import RunConfig
from ottla.sim.sweeps.kills import kills
from ottla.sim.world.batch import record_of, time_of
from ottla.sim.world.frames import Frame, produce
from ottla.sim.world.world import SECOND, World

RECORDS = (40, 0, 80)
"""What the log holds: neither their times nor their numbers are in order."""


@pytest.fixture(scope="module")
def world():
    world = World(RunConfig(nodes=3), Drawn(1))
    world.boot()
    batches = [build_batch([record_of(each, 16)], base_timestamp=time_of(each)) for each in RECORDS]
    leader = world.leader(0)
    assert leader is not None
    connection = world.clients.connect(1, leader.node_id, lambda _: None, lambda _: None)
    for number, data in enumerate(batches):
        connection.send(Frame(number, produce(-1, SECOND, ((0, data),))))
    world.kernel.run(world.kernel.now + SECOND)
    return world


def asked(world, what, **named):
    """What a question to the leader comes to, as its asker hears it, and the rows of that."""
    rows = len(world.history.rows)
    heard = []
    question = Question(what, world.leader(0).node_id, 0, **named)
    Asker(world, ASKER, lambda _, error, off: heard.append((error, off))).ask(question)
    world.kernel.run(world.kernel.now + SECOND)
    new = world.history.rows[rows:]
    return heard, [row for row in new if row.client == ASKER and row.kind != "close"]


@pytest.mark.parametrize(
    ("what", "named", "off", "columns"),
    [
        ("latest", {}, 3, {"term": 1}),
        ("earliest", {}, 0, {"term": 1}),
        ("time", {"value": time_of(40)}, 0, {"value": time_of(40), "hw": time_of(40)}),
        ("time", {"value": time_of(40) + 1}, 2, {"hw": time_of(80), "term": 1}),
        ("time", {"value": time_of(80) + 1}, -1, {"hw": -1, "term": -1}),
        ("epoch", {"value": 1}, 3, {"value": 1, "term": 1}),
        ("epoch", {"value": 2}, -1, {"value": 2, "term": -1}),
        ("epoch", {"value": 0}, 0, {"value": 0, "term": 0}),
    ],
)
def test_an_answer_is_told_with_what_was_asked_and_when(world, what, named, off, columns):
    since = len(world.history.rows)
    heard, (row,) = asked(world, what, **named)
    assert heard == [(ErrorCode.NONE, off)]
    assert (row.kind, row.code, row.off, row.aux) == ("learn", what, off, since)
    assert {name: getattr(row, name) for name in columns} == columns


def test_who_leads_is_told_by_any_node(world):
    leader = world.leader(0).node_id
    heard, (row,) = asked(world, "leader")
    assert heard == [(ErrorCode.NONE, leader)]
    assert (row.kind, row.code, row.cand, row.term) == ("learn", "leader", leader, 1)


@pytest.mark.parametrize(
    ("leads", "error"), [(2, "UNKNOWN_LEADER_EPOCH"), (0, "FENCED_LEADER_EPOCH")]
)
def test_an_error_is_told_with_the_leader_epoch_that_was_named(world, leads, error):
    _, (row,) = asked(world, "latest", leads=leads)
    assert (row.kind, row.code, row.term, row.off) == ("error", error, leads, None)


def test_who_is_out_of_range_goes_where_its_reset_policy_says_and_reads_there(world):
    heard, rows = asked(world, "fetch", off=4)
    assert heard == [(ErrorCode.OFFSET_OUT_OF_RANGE, -1), (ErrorCode.NONE, 0), (ErrorCode.NONE, 1)]
    told = [(row.kind, row.code, row.off) for row in rows]
    assert told == [
        *(("error", "OFFSET_OUT_OF_RANGE", 4), ("learn", "earliest", 0)),
        *(("fetch", None, 0), ("poll", None, 0)),
    ]


def test_a_reader_whose_log_is_another_one_is_told_where_they_part(world):
    _, (row,) = asked(world, "fetch", off=2, value=0)
    assert (row.kind, row.code, row.value, row.hw) == ("learn", "diverging", 0, 2)
    assert (row.term, row.off) == (0, 0)


def test_some_are_asked_in_every_run():
    rows = [row for row in run(1).rows if (row.client or 0) > ASKER]
    assert len({row.client for row in rows}) <= ASKED_A_RUN
    assert {row.kind for row in rows} >= {"learn", "error", "fetch"}


@pytest.mark.slow
def test_who_is_sent_away_from_what_the_log_has_notices(monkeypatch):
    monkeypatch.setattr(SequentialClient, "start", lambda _: None)  # it notices, too
    found = kills(BY_ID["M39"], range(60), once=True)
    assert dict(found.invariants) == {"sim-I39": 1}
