"""Every labelled history is judged as its label says, in Python and in SQL alike.

A label names all invariants that do not hold, so each history is a hit for those and a near miss
for the others. All of them lie in one table, which every statement judges once.
"""

import subprocess
import sys
from collections import Counter

import duckdb
import pytest

from ottla.sim.history.history import Event, History
from ottla.sim.invariants import statements
from ottla.sim.invariants.findings import AnomalyError
from ottla.sim.invariants.invariant import Place
from ottla.sim.invariants.judge import attach, judge
from ottla.sim.invariants.numbers import ACKED_SHARE, LONGEST_GAP, NOT_JUDGED
from ottla.sim.invariants.registry import INVARIANTS, WAITING, invariant
from sim_histories import FOLDER, histories, read
from sim_sql import sql_losses, sql_numbers, sql_verdicts

CORPUS = histories()
LABELLED = [row.id for row in INVARIANTS if row.place is not Place.MEASURED]
FIGURES = {"sim-I32": ACKED_SHARE, "sim-I33": LONGEST_GAP, "sim-I43": NOT_JUDGED}


@pytest.fixture(scope="module")
def database():
    connection = duckdb.connect()
    statements.load(connection, [each.events for each in CORPUS])
    return connection


@pytest.fixture(scope="module")
def sql(database):
    return sql_verdicts(database)


@pytest.mark.parametrize("number", range(len(CORPUS)), ids=[str(each) for each in CORPUS])
def test_python_and_sql_say_what_the_label_says(number, sql):
    labelled = CORPUS[number]
    verdict = judge(labelled.events)
    told = [str(anomaly) for anomaly in verdict.anomalies]
    assert (verdict.broken, told) == (labelled.broken, told)
    assert sql.get(number, frozenset()) == labelled.broken


@pytest.mark.parametrize("name", sorted(FIGURES))
def test_figures_are_those_of_the_label_in_python_and_in_sql(name, database):
    statements.prepare(database)
    counted = sql_numbers(database, FIGURES[name])
    for number, labelled in enumerate(CORPUS):
        figure = judge(labelled.events).numbers[FIGURES[name]]
        assert counted.get(number, 0) == figure, labelled
        assert labelled.numbers.get(name, figure) == figure, labelled
    assert sum(name in labelled.numbers for labelled in CORPUS) >= 4


def test_copies_have_the_causes_of_the_label():
    for labelled in CORPUS:
        found = [copy.cause.name for copy in judge(labelled.events).duplicates]
        if labelled.causes:
            assert found == labelled.causes, labelled


@pytest.mark.slow
def test_losses_are_counted_alike(database):
    statements.prepare(database)
    counted = sql_losses(database)
    told = {
        (number, row.acks): (row.acknowledged, row.lost)
        for number, labelled in enumerate(CORPUS)
        for row in judge(labelled.events).losses
    }
    assert counted == told
    assert {acks for (_, acks), (_, lost) in told.items() if lost} == {-1, 0, 1}


def test_every_invariant_has_two_hits_and_two_near_misses():
    """In the file that is named after it; a near miss is a history in which it does hold."""
    assert len(CORPUS) >= 200
    for name in LABELLED:
        own = [each for each in CORPUS if each.file == f"{name.removeprefix('sim-')}.txt"]
        hits = sum(name in each.broken for each in own)
        assert (name, hits >= 2, len(own) - hits >= 2) == (name, True, True)


def test_no_history_stands_there_twice():
    names = Counter(str(each) for each in CORPUS)
    assert [name for name, count in names.items() if count > 1] == []
    bodies = Counter(tuple(each.events) for each in CORPUS)
    assert max(bodies.values()) == 1


def test_there_is_a_file_for_every_invariant_and_no_other():
    files = {path.stem for path in FOLDER.glob("I*.txt")}
    assert files == {row.id.removeprefix("sim-") for row in INVARIANTS}


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("shout op=1", "no kind 'shout'"),
        ("ok offset=1", "no column 'offset'"),
        ("ok op=0..1 off=0..2", "ranges of different lengths"),
        ("ok op=x", "invalid literal"),
    ],
)
def test_a_line_that_makes_no_sense_is_named(line, told):
    with pytest.raises(ValueError, match=f"x.txt:3: .*{told}"):
        read(f"== a history\nexpect none\n{line}\n", "x.txt")


def test_an_online_check_ends_the_run_at_its_row():
    history = History(lambda: 0)
    attach(history, stop=True)
    history.add("leader", node=1, inc=1, partition=0, term=2, log_index=1, chain=0, aux=0)
    with pytest.raises(AnomalyError, match="nodes 1 and 2 both lead term 2") as ended:
        history.add("leader", node=2, inc=1, partition=0, term=2, log_index=1, chain=0, aux=0)
    assert ended.value.anomaly[:2] == ("sim-I15", 1)
    assert len(history.rows) == 2


def test_no_node_may_handle_what_ends_a_run():
    assert not issubclass(AnomalyError, Exception)


@pytest.mark.parametrize("labelled", CORPUS, ids=str)
def test_online_checks_see_the_same_in_a_running_history(labelled):
    history = History(lambda: 0)
    findings = attach(history)
    for event in labelled.events:
        columns = event.told()
        kind = columns.pop("kind")
        history.add(kind, **{k: v for k, v in columns.items() if k not in {"eid", "t_us"}})
    online = {row.id for row in INVARIANTS if row.place is Place.ONLINE}
    assert set(findings.first) == labelled.broken & online


@pytest.mark.parametrize("name", sorted(WAITING))
def test_what_waits_for_other_parts_is_refused_by_name(name):
    """Membership change (sim-I29) and leases (sim-I30): no row, no statement, no verdict."""
    with pytest.raises(LookupError, match=f"{name}.*waits for"):
        invariant(name)
    assert name not in statements.queries()


def test_every_row_has_a_statement_and_every_statement_a_row():
    figures = {*FIGURES.values(), "losses by acks"}
    assert set(statements.queries()) == {*LABELLED, *figures}
    numbers = [int(row.id.removeprefix("sim-I")) for row in INVARIANTS]
    assert numbers == [each for each in range(1, 53) if each not in {29, 30}]


def test_statements_keep_to_what_both_engines_know():
    forbidden = ("QUALIFY", "LIST(", "COLLECT_", "STRING_AGG", "ASOF", "FILTER (", "::", "IGNORE")
    for name, text in statements.queries().items():
        assert [word for word in forbidden if word in text.upper()] == [], name
        assert "run_id" in text
        assert "GROUP BY" in text


def test_the_judge_loads_no_database():
    code = (
        "import sys; from ottla.sim.invariants import judge, registry, statements; "
        "statements.views(); print(*sys.modules)"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    loaded = {name.split(".", 1)[0] for name in told.stdout.split()}
    assert not loaded & {"duckdb", "pyarrow", "pyspark", "pandas", "lmdb", "kio", "typer", "grpc"}


def test_rows_of_a_table_begin_with_run_and_seed():
    (row,) = statements.table_rows(7, 99, [Event(0, 5, "ok", off=3)])
    assert (row[:5], len(row)) == ((7, 99, 0, 5, "ok"), len(Event._fields) + 2)
