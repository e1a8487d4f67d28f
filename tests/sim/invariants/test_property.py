"""The checks against second opinions, on histories that nobody thought of.

Naive ones (`sim_naive`) on small random histories that Hypothesis makes and shrinks; the SQL on
labelled histories with something in them changed at random (`sim_perturb`).
"""

from random import Random

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sim_naive
from ottla.sim.history.history import Event
from ottla.sim.invariants import statements
from ottla.sim.invariants.judge import judge
from ottla.sim.invariants.losses import ByOffset
from ottla.sim.invariants.numbers import ACKED_SHARE, LONGEST_GAP, NOT_JUDGED
from sim_histories import histories
from sim_perturb import interleaved, perturbed
from sim_sql import sql_losses, sql_numbers, sql_verdicts

PARTITIONS = st.integers(0, 1)
NODES = st.integers(1, 3)
SMALL = st.integers(0, 4)
INDEX = st.integers(1, 4)
ROUNDS = 4


def numbered(rows):
    return [Event(eid, eid, kind, **columns) for eid, (kind, columns) in enumerate(rows)]


def row(kind, **columns):
    return st.tuples(st.just(kind), st.fixed_dictionaries(columns))


def agree(name, naive, events):
    assert (name in judge(events).broken) == naive(events)


# ---- records and clients

RECORDS = st.lists(
    st.fixed_dictionaries({
        "partition": PARTITIONS, "pid": st.integers(7, 8), "epoch": st.integers(0, 1),
        "seq": SMALL, "value": SMALL, "aux": st.sampled_from([1, 1, 1, 0]),
    }),
    max_size=9,
)  # fmt: skip


def one_log(records):
    return numbered(
        ("final", {**record, "node": 1, "off": off, "chain": off})
        for off, record in enumerate(records)
    )


@pytest.mark.slow
@given(RECORDS)
def test_duplicates(records):
    agree("sim-I02", sim_naive.duplicates, one_log(records))


@pytest.mark.slow
@given(RECORDS)
def test_gaps(records):
    agree("sim-I04", sim_naive.gaps, one_log(records))


@pytest.mark.slow
@given(st.permutations(range(6)), st.lists(st.tuples(SMALL, PARTITIONS, st.sampled_from([-1, 1]))))
def test_real_time_order(ops, oks):
    given_out = [("inv", {"op": op, "value": op, "acks": -1, "client": 1}) for op in ops]
    rows = []
    for place, (kind, columns) in enumerate(given_out):
        rows.append((kind, {**columns, "partition": columns["op"] % 2}))
        for off, _, acks in oks[place::6]:
            op = ops[off % (place + 1)]
            rows.append(("ok", {"op": op, "off": off, "acks": acks, "partition": op % 2}))
    agree("sim-I08", sim_naive.late, numbered(rows))


@pytest.mark.slow
@given(
    st.lists(row("poll", client=st.integers(8, 9), partition=PARTITIONS, off=SMALL, value=SMALL))
)
def test_jumps(polls):
    agree("sim-I12", sim_naive.jumps, numbered(polls))


# ---- logs and commits

ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["append"] * 5 + ["commit"] * 3 + ["leader"] * 2 + ["truncate", "crash"]
                        + ["snapshot"]),
        NODES, st.integers(1, 4), SMALL,
    ),
    max_size=25,
)  # fmt: skip


def cluster(actions):
    """ByOffset of nodes whose logs are logs, whatever else is wrong with them."""
    logs: dict[int, list[int]] = {1: [], 2: [], 3: []}
    rows = []
    for kind, node, term, number in actions:
        log = logs[node]
        columns = {"node": node, "inc": 1, "partition": 0, "term": term + 2 * (kind == "leader")}
        if kind == "append":
            log.append(hash((log[-1] if log else 0, term, number % 2)) & 0xFFFF)
            columns |= {"log_index": len(log), "chain": log[-1]}
        elif kind == "leader":
            columns |= {"log_index": len(log) + 1, "chain": log[-1] if log else 0, "aux": 0}
        elif kind == "commit":
            columns |= {"log_index": min(number, len(log)), "aux": 1}
        else:
            keep = min(number, len(log))
            if kind == "snapshot":
                columns |= {"code": "installed"}
                log.extend([7] * (number + 1 - len(log)))
                keep = number + 1
            del log[keep:]
            columns |= {"log_index": keep + (kind == "truncate")}
        rows.append((kind, columns))
    return numbered(rows)


@pytest.mark.slow
@given(ACTIONS)
def test_leader_completeness(actions):
    agree("sim-I20", sim_naive.incomplete_leader, cluster(actions))


@pytest.mark.slow
@given(
    st.lists(
        row("commit", node=NODES, partition=PARTITIONS, term=SMALL, log_index=SMALL,
            aux=st.sampled_from([1, 1, 0])),
    )
)  # fmt: skip
def test_commits_that_fall(commits):
    agree("sim-I23", sim_naive.commit_falls, numbered(commits))


@pytest.mark.slow
@given(
    st.lists(
        st.one_of(
            row("durable", node=NODES, partition=PARTITIONS, log_index=INDEX),
            row("durable", node=NODES, partition=PARTITIONS, log_index=INDEX),
            row("append", node=NODES, partition=PARTITIONS, log_index=INDEX, term=st.just(1),
                chain=st.integers(1, 2)),
            row("truncate", node=NODES, partition=PARTITIONS, log_index=INDEX),
            row("crash", node=NODES, partition=PARTITIONS, log_index=INDEX),
            row("snapshot", node=NODES, partition=PARTITIONS, log_index=INDEX,
                code=st.just("installed")),
            row("commit", node=NODES, partition=PARTITIONS, log_index=INDEX, term=st.just(1),
                quorum=st.just(2)),
        )
    )
)  # fmt: skip
def test_durable_quorums(rows):
    agree("sim-I24", sim_naive.no_durable_quorum, numbered(rows))


@pytest.mark.slow
@given(
    st.lists(st.integers(0, 6)),
    st.integers(-1, 10),
    st.integers(-1, 7),
    st.sampled_from([1, -1]),
)
def test_the_first_row_behind_one_with_an_offset_of_at_most_so_much(rows, behind, off, step):
    found = ByOffset(numbered(("append", {"off": each}) for each in rows), step).first(behind, off)
    ordered = list(enumerate(rows))[::step]
    fits = [eid for eid, each in ordered if step * eid > step * behind and each <= off]
    assert (None if found is None else found.eid) == (fits[0] if fits else None)


# ---- Python and SQL


@pytest.fixture(scope="module")
def changed():
    """Each labelled history four times, with one to four changes; and twice laid into another one,
    with up to one."""
    corpus = histories()
    found = [
        perturbed(each.events, Random(number * ROUNDS + times), times + 1)
        for number, each in enumerate(corpus)
        for times in range(ROUNDS)
    ]
    for number, each in enumerate(corpus):
        rng = Random(f"two {number}")
        alike = [other for other in corpus if other.file == each.file]
        for times, others in enumerate((alike, corpus)):
            both = interleaved(each.events, rng.choice(others).events, rng)
            found.append(perturbed(both, rng, times))
    return found


@pytest.mark.slow
def test_sql_and_python_agree_on_what_nobody_labelled(changed):
    database = duckdb.connect()
    statements.load(database, changed)
    verdicts = sql_verdicts(database)
    figures = [sql_numbers(database, name) for name in (ACKED_SHARE, LONGEST_GAP, NOT_JUDGED)]
    losses = sql_losses(database)
    hits = 0
    for number, events in enumerate(changed):
        verdict = judge(events)
        told = [each.told() for each in events]
        assert (verdict.broken, told) == (verdicts.get(number, frozenset()), told)
        assert list(verdict.numbers.values()) == [each.get(number, 0) for each in figures]
        for each in verdict.losses:
            assert losses[number, each.acks] == (each.acknowledged, each.lost)
        hits += len(verdict.broken)
    assert hits > len(changed) // 4, "the changes break too little to show anything"
