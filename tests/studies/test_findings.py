"""Rows of SQL as tables and charts, on rows made by hand.

Names of columns say how their values are shown. Points of coverage are told in words, each state of
a real run in words of its own.
"""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest

from ottla.sim.coverage.points import name_of, told
from ottla.sim.coverage.states import states_of
from ottla.sim.run import run
from ottla.sim.settings.settings import RunConfig
from ottla.sim.studies.findings import chart_of, head, percent, shown, table_of


def test_names_of_columns_say_how_they_are_shown():
    table = table_of(
        "t",
        [
            {
                "profile": "kafka",
                "runs": 12_345,
                "p99_us": 1_500,
                "lost_share": 0.25,
                "mean": 1.23456,
            },
            {
                "profile": None,
                "runs": Decimal(7),
                "p99_us": None,
                "lost_share": 1.0,
                "mean": 1234.5,
            },
        ],
        "a note",
    )
    assert [each.head for each in table.columns] == [
        "profile",
        "runs",
        "p99, ms",
        "lost share",
        "mean",
    ]
    assert [each.number for each in table.columns] == [False, True, True, True, True]
    assert table.rows == (
        ("kafka", "12,345", "1.5", "25\u00a0%", "1.23"),
        ("\u2013", "7", "\u2013", "100\u00a0%", "1,234"),
    )
    assert table.note == "a note"


def test_a_column_has_as_many_digits_in_every_row():
    rows = [{"mean_us": us, "set_ms": ms} for us, ms in ((2_664, 0.4), (2_800, 20), (3_000, 0.3))]
    table = table_of("t", rows)
    assert [each.head for each in table.columns] == ["mean, ms", "set, ms"]
    assert table.rows == (("2.66", "0.4"), ("2.80", "20"), ("3.00", "0.3"))


def test_ids_that_nobody_knows_by_heart_are_told_in_words():
    rows = [{"point": "0/0/0/1/2/0/1/error", "invariant": "sim-I02"}, {"point": "sim-S06"}]
    cells = [row[0] for each in rows for row in table_of("t", [each]).rows]
    assert cells[0] == (
        "a client is told to try again: no node is up, nobody leads, "
        "one holds entries that may be cut, logs end at two places, a batch is waited for"
    )
    assert cells[1] == "sim-S06, appended, cut, appended again"
    assert table_of("t", [rows[0]]).rows[0][1] == "sim-I02, duplicate"


def test_every_state_that_a_run_comes_through_has_words():
    outcome = run(3, RunConfig(records=30, load_ms=2_000, fault_every_ms=300))
    states = states_of(outcome.rows, outcome.config.partitions)
    assert len(states) > 5
    words = {told(name_of(state)) for state in states}
    assert len(words) == len(states)
    assert not any("/" in each for each in words)
    assert told("a/b") == "a/b"


def test_an_interval_stands_in_the_cell_of_what_it_is_of():
    row = {"share": 0.5, "share_low": 0.25, "share_high": 0.75, "low": 3, "x_low": 1}
    table = table_of("t", [row, {**row, "share": None}])
    assert [each.head for each in table.columns] == ["share", "low", "x low"]
    assert table.rows[0] == ("50\u00a0% (25 to 75)", "3", "1")
    assert table.rows[1][0] == "\u2013"


def test_a_table_without_rows_has_no_columns():
    assert table_of("t", []).columns == ()


@pytest.mark.parametrize(
    ("share", "said"),
    [
        (0.0, "0"),
        (1.0, "100"),
        (0.999_999, "99.99"),
        (0.999_999_9, "99.99"),
        (0.991_234, "99.12"),
        (0.123_4, "12.3"),
        (0.000_012_345, "0.0012"),
        (0.000_001, "0.0001"),
        (1 / 2_885_209, "0.00003"),
        (4e-12, "0.0000000004"),
    ],
)
def test_what_is_not_all_and_not_nothing_never_looks_so(share, said):
    assert percent(share) == said


def test_values():
    assert head("time_to_kill") == "time to kill"
    assert shown("fell_over", True) == "yes"
    assert shown("x", 0.5) == "0.5"


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("mean", float("nan"), "\u2013"),
        ("mean", Decimal("NaN"), "\u2013"),
        ("mean", float("inf"), "\u221e"),
        ("lost_share", float("inf"), "\u221e\u00a0%"),
        ("lost_share", float("nan"), "\u2013"),
        ("lost_share", 1.5, "150\u00a0%"),
        ("p99_us", float("-inf"), "-\u221e"),
        ("day", date(2026, 1, 2), "2026-01-02"),
        ("at_us", datetime(2026, 1, 2, 3, 4, tzinfo=UTC), "2026-01-02 03:04:00+00:00"),
        ("span_share", timedelta(seconds=5), "0:00:05"),
        ("several", [1, "a", None, 2.5], "1, a, \u2013, 2.5"),
        ("one", {"a": 1_000}, "a: 1,000"),
        ("raw", b"\x01\xff", "01ff"),
    ],
)
def test_whatever_sql_gives_is_shown(name, value, said):
    """Each was a traceback, and an infinite share 99.99 percent."""
    table = table_of("t", [{name: value}])
    assert table.rows == ((said,),)
    assert table.columns[0].number == isinstance(value, float | Decimal)


def test_what_is_no_number_is_not_drawn_and_an_infinite_one_is_refused():
    nan, inf = float("nan"), float("inf")
    rows = [
        {"series": "a", "x": 1, "y": 2.0, "low": nan, "high": nan},
        {"series": "a", "x": 2, "y": nan},
    ]
    (a,) = chart_of("title", "lines", ("x", "y"), rows).series
    assert (a.points, a.spans) == (((1.0, 2.0),), (None,))
    for name in ("x", "y", "low", "high"):
        told = f"row 2: {name} is infinite, which cannot be drawn"
        with pytest.raises(ValueError, match=told):
            chart_of("title", "lines", ("x", "y"), [rows[0], {**rows[0], name: inf}])


@pytest.mark.parametrize("kind", ["lines", "bars"])
def test_a_negative_number_is_refused_and_not_drawn_as_nothing(kind):
    rows = [
        {"series": "a", "x": 1, "y": 2},
        {"series": "a", "x": 2, "y": -10, "low": -11, "high": -9},
    ]
    with pytest.raises(ValueError, match="row 2: y is -10, and axes begin at 0: draw its size"):
        chart_of("title", kind, ("x", "y"), rows)


def test_lines_are_in_the_order_of_x_and_know_how_certain_they_are():
    rows = [
        {"series": "a", "x": 5, "y": 2.0, "low": 1.0, "high": 3.0},
        {"series": "a", "x": 1, "y": 1.0, "low": None, "high": None},
        {"series": "b", "x": 1, "y": 4.0, "published": True},
        {"series": "b", "x": 2, "y": None},
    ]
    chart = chart_of("title", "lines", ("x", "y"), rows)
    a, b = chart.series
    assert (a.points, a.spans) == (((1.0, 1.0), (5.0, 2.0)), (None, (1.0, 3.0)))
    assert (b.points, b.published, chart.names) == (((1.0, 4.0),), True, ())


def test_bars_stand_over_names_in_the_order_in_which_they_come():
    rows = [
        {"series": "off", "x": "all", "y": 3},
        {"series": "off", "x": "1", "y": 2},
        {"series": "on", "x": "1", "y": 1},
    ]
    chart = chart_of("title", "bars", ("acks", "lost"), rows)
    assert chart.names == ("all", "1")
    assert [each.points for each in chart.series] == [((0.0, 3.0), (1.0, 2.0)), ((1.0, 1.0),)]


def test_another_kind_of_chart_is_refused():
    with pytest.raises(ValueError, match="'pies' is not a kind of chart; there are lines, bars"):
        chart_of("title", "pies", ("x", "y"), [])
