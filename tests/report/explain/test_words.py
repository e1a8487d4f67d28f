"""What rows and messages say to people: one sentence, or nothing where they are dull."""

import pytest

from ottla.broker.wire.answers import ProduceAnswer
from ottla.broker.wire.requests import ProduceRequest
from ottla.raft.messages import AppendEntries, RequestVote, VoteReply
from ottla.report.explain.words import batch, joined, sentence
from ottla.sim.history.history import Event
from ottla.sim.nemesis.strays import STRANGER
from ottla.sim.recording.recorder import Step, Wire


def step(kind, node=1, **columns):
    row = Event(0, 0, kind, node=node, inc=1, partition=0, **columns)
    return Step(0, 0, kind, ("node", node), 0, row)


def sent(message, *, arrives=True):
    wire = Wire(message, ("node", 1), ("node", message.to), 0, 1 if arrives else None, 0)
    return Step(0, 0, "sent", ("node", 1), 0, None, wire)


BATCH = {"pid": 7, "epoch": 0, "seq": 3, "seq_last": 5}


@pytest.mark.parametrize(
    ("told", "says"),
    [
        (step("append", off=12, log_index=9, term=2, aux=1, **BATCH), "appends 7/0:3-5 at 12"),
        (step("append", log_index=9, term=2, aux=1), "appends entry 9 in term 2"),
        (step("append", log_index=9, term=2, aux=0), None),
        (step("commit", hw=12, log_index=9, term=2, aux=0), None),
        (step("leader", term=3, aux=2), "leads term 3, with 2 requests in flight of an earlier le"),
        (
            step("decide", node=0, code="duplicate", off=6, **BATCH),
            "says of 7/0:3-5: duplicate of offset 6",
        ),
        (step("decide", code="accept", **BATCH), None),
        (step("fault", code="program kill"), None),
        (step("state", state_hash=1), None),
        (sent(VoteReply(1, 1, 2, 3, granted=False)), "refuses its vote for 2 in term 3"),
        (
            sent(RequestVote(1, 1, 2, 3, 0, 0), arrives=False),
            "asks 2 for its vote in term 3 (never",
        ),
        (sent(AppendEntries(1, 1, 2, 3, 8, 3, 8, 8)), None),
    ],
)
def test_one_sentence_or_none(told, says):
    said = sentence(told)
    assert said is None if says is None else said is not None and said.startswith(says)


ACCEPTED = step("decide", code="accept", **BATCH)
REPEATED = step("decide", code="duplicate", off=6, **BATCH)
PARKED = step("decide", code="park", **BATCH)
GAP = step("decide", code="gap", **BATCH)


@pytest.mark.parametrize(
    ("taken", "model", "says"),
    [
        (ACCEPTED, GAP, "accepts 7/0:3-5, the model says gap"),
        (ACCEPTED, REPEATED, "accepts 7/0:3-5, the model says duplicate of offset 6"),
        (REPEATED, ACCEPTED, "takes 7/0:3-5 for a duplicate of offset 6, the model says accept"),
        (PARKED, GAP, "parks 7/0:3-5, the model says gap"),
        (GAP, PARKED, "refuses 7/0:3-5 as gap, the model says park"),
    ],
)
def test_a_decision_that_the_model_would_not_take_is_said_by_who_took_it(taken, model, says):
    said = model.row._replace(node=0, inc=0)
    assert sentence(Step(0, 0, "decide", ("node", 1), 0, said, detail=taken.row)) == says


def test_what_is_alike_is_said_once():
    entries = [AppendEntries(1, 1, to, 3, 8, 3, 10, 8) for to in (2, 3)]
    assert joined([sent(each) for each in entries]) == "sends entries 9-10 to 2, 3"


def test_a_batch_is_named_by_its_sequences():
    assert batch(7, 0, 3, 3) == "7/0:3"
    assert batch(7, 0, 3, 5) == "7/0:3-5"
    assert batch(None, None, None, None) == "a batch without sequences"
    assert batch(-1, -1, -1, 83) == "a batch without sequences"


@pytest.mark.parametrize(
    ("what", "message", "says"),
    [
        ("asked", ProduceRequest(-1, 0, ()), "sends a request to 2"),
        ("arrived", ProduceRequest(-1, 0, ()), "a request of the stray arrives"),
        ("answered", ProduceAnswer(()), "its answer to client 2 leaves"),
        ("heard", ProduceAnswer(()), "hears "),
    ],
)
def test_an_end_of_a_wire_that_is_drawn_is_never_without_words(what, message, says):
    wire = Wire(message, ("client", STRANGER), ("node", 2), 0, 1, 0)
    assert joined([Step(0, 0, what, ("node", 1), 0, None, wire)]).startswith(says)
