"""From tables to findings and files: sentences, the worst runs, their pictures, the bill.

The study here is run once, on DuckDB; a leader is killed in it, so that there is something to draw.
Its command is run as a user would run it, and must print the digest that the report has.
"""

import json
import re
import shlex
import shutil
from dataclasses import replace

import pytest

from cli_process import ottla
from ottla.report.study.pictures import picture_of
from ottla.report.study.report import write
from ottla.sim.recording.record import NotTheSameError
from ottla.sim.studies import origin
from ottla.sim.studies.engine import open_engine
from ottla.sim.studies.findings import Worst
from ottla.sim.studies.lake import SUCCESS, made
from ottla.sim.studies.pipeline import STAGES
from ottla.sim.studies.reporting import findings_of
from ottla.sim.studies.sentences import answer, filled
from ottla.sim.studies.sheets import SILVER
from ottla.sim.studies.study import Answer, StudyError, parse
from ottla.sim.studies.worst import worst_runs
from studies_cases import put
from studies_tiny import TINY, study

KILLED = (
    TINY.replace("records = 12", "records = 120").replace(
        "load_ms = 1000", 'load_ms = 7000\nfailure = "the leader is killed"'
    )
    + """
[[table]]
title = "Runs"
sql = "SELECT variant, COUNT(*) AS runs FROM runs GROUP BY variant ORDER BY variant"
[[chart]]
title = "Acknowledged"
kind = "bars"
x = "variant"
y = "records"
sql = '''
SELECT 'all' AS series, CAST(variant AS STRING) AS x, SUM(acknowledged) AS y
FROM runs
GROUP BY variant
ORDER BY variant
'''
[worst]
sql = "SELECT run_id, seed, events, 2000000 AS at_us FROM runs ORDER BY seed DESC, run_id"
text = "{events} events"
"""
)


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory):
    done = study(tmp_path_factory.mktemp("killed"), KILLED)
    yield done
    done.engine.close()


@pytest.fixture(scope="module")
def findings(pipeline):
    return findings_of(pipeline.lake, pipeline.engine, "ottla study run killed")


def test_the_answer_is_a_sentence_made_of_one_row():
    asked = Answer("", "{lost:,} of {all} lost, {share:.1%}; {more}")
    told = answer(asked, [{"lost": 12_345, "all": 7, "share": 0.5, "more": None}])
    assert told == "12,345 of 7 lost, 50.0\u00a0%; \u2013"
    with pytest.raises(StudyError, match="gives 2 rows; one is expected"):
        answer(asked, [{}, {}])
    with pytest.raises(StudyError, match=r"answer\.text: no column 'lots'; there are lost"):
        answer(Answer("", "{lots}"), [{"lost": 1}])
    with pytest.raises(StudyError, match=r"worst\.text: "):
        filled("{lost:,}", {"lost": "many"}, "worst")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{lost:99999999999}", "{:99999999999} is too wide, at most 100"),
        ("{lost:.999999999f}", "{:.999999999f} is too wide, at most 100"),
        ("{lost:{lost}}", "{:99999} is too wide, at most 100"),
        ("{lost.__class__}", "no column 'lost.__class__'; there are lost"),
        ("{lost[0]}", "no column 'lost[0]'; there are lost"),
        ("{}", "{} names no column; write {lost}"),
        ("{0}", "{} names no column; write {lost}"),
        (
            "{lost:c}",
            "{:c} is no format of a number; leave it out, or write {:,} or {:.1f}",
        ),
    ],
)
def test_a_sentence_names_columns_and_nothing_else(text, told):
    with pytest.raises(StudyError) as raised:
        filled(text, {"lost": 99_999 if "{lost}" in text else 10**7}, "answer")
    assert str(raised.value) == f"answer.text: {told}"


def test_a_sentence_says_what_is_no_number():
    row = {"a": float("nan"), "b": float("inf")}
    assert filled("{a:.1f} {b:.1%}", row, "answer") == "\u2013 \u221e"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ("99999 AS run_id", "run_id is 99999; there is no such run"),
        ("CAST(NULL AS BIGINT) AS run_id", "run_id is NULL; the number of a run is expected"),
        ("0.5 AS run_id", "run_id is 0.5; a whole number is expected"),
        ("run_id, CAST('NaN' AS DOUBLE) AS at_us", "at_us is nan; a whole number is expected"),
    ],
)
def test_a_worst_run_that_there_is_not_is_one_line(pipeline, columns, told):
    text = f'{KILLED.partition("[worst]")[0]}[worst]\nsql = "SELECT {columns} FROM runs"\n'
    with pytest.raises(StudyError) as raised:
        worst_runs(parse(f'{text}text = "bad"\n'), pipeline.engine)
    assert str(raised.value) == f"worst.sql: {told}"


@pytest.mark.slow
def test_a_partition_that_there_is_not_is_one_line(findings, tmp_path):
    worst = replace(findings.worst[0], partition=7)
    with pytest.raises(StudyError, match=r"^worst\.sql: partition of run 6 is 7, of 1$"):
        picture_of(parse(KILLED), worst, tmp_path)


def test_findings_are_what_the_tables_say(findings):
    assert findings.answer == "8 runs."
    assert (findings.runs, findings.judged, findings.broke, findings.variants) == (8, 8, 0, 2)
    (table,) = findings.tables
    assert table.rows == (("0", "4"), ("1", "4"))
    (chart,) = findings.charts
    assert chart.names == ("0", "1")
    assert dict(findings.versions)["bronze"].startswith("version ")


def test_the_bill_has_what_every_stage_wrote_and_how_long_it_took(pipeline, findings):
    folders = [made(each.parent) for each in pipeline.lake.root.rglob(SUCCESS)]
    written = [each for each in folders if each is not None]
    assert sum(each.rows for each in findings.stages) == sum(each.rows for each in written)
    assert sum(each.bytes for each in findings.stages) == sum(each.bytes for each in written)
    stages = {each.name: each for each in findings.stages}
    assert list(stages) == ["sweep", "silver", "judge", "agree", "gold", "report"]
    assert all(each.seconds > 0 for each in findings.stages)
    assert [each for each in STAGES if not stages[each].bytes] == ["agree"]


@pytest.mark.slow
def test_what_is_done_with_every_command_is_on_the_bill_once(tmp_path):
    """Or the report of a study that is whole would be another each time."""
    done = study(tmp_path)
    first = findings_of(done.lake, done.engine, "").stages
    done.engine.close()
    assert {"agree", "report"} <= done.lake.spent().keys()
    again = study(tmp_path)
    assert findings_of(again.lake, again.engine, "").stages == first
    again.engine.close()


@pytest.mark.slow
def test_a_folder_whose_bill_is_older_is_read(tmp_path):
    """It had no seconds of agree and report; what it had stays."""
    done = study(tmp_path)
    done.engine.close()
    bill = dict.fromkeys(("sweep", "silver", "judge", "gold"), 7.0)
    (tmp_path / "study.bill.json").write_text(json.dumps(bill))
    again = study(tmp_path)
    findings = findings_of(again.lake, again.engine, "")
    again.engine.close()
    told = {each.name: each.seconds for each in findings.stages}
    assert {name: told[name] for name in bill} == bill
    assert told["agree"] > 0
    assert told["report"] > 0


@pytest.mark.slow
def test_what_is_gone_on_with_costs_no_more_than_what_is_done(tmp_path):
    first = study(tmp_path)
    first.engine.close()
    bill = first.lake.spent()
    study(tmp_path).engine.close()
    assert first.lake.spent() == bill
    shutil.rmtree(tmp_path / "gold" / "losses")
    study(tmp_path).engine.close()
    again = first.lake.spent()
    assert again.pop("gold") > bill.pop("gold")
    assert again == bill


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("SELECT 'a' AS series, 'b' AS x, 1 AS y", "could not convert string to float: 'b'; a num"),
        ("SELECT 'a' AS series, 1 AS y", "no column 'x'; series, x and y are expected"),
        ("SELECT 1 AS y FROM nothing", "engine duckdb: Catalog Error: Table with name nothing"),
    ],
)
def test_a_chart_that_cannot_be_drawn_names_its_key(pipeline, monkeypatch, sql, told):
    """Where nothing could be told before anything was run: without DuckDB, on Spark."""
    text = KILLED.replace('kind = "bars"', 'kind = "lines"')
    text = re.sub(r"sql = '''.*?'''", lambda _: f'sql = "{sql}"', text, flags=re.DOTALL)
    monkeypatch.setattr(pipeline.lake, "plan", replace(pipeline.lake.plan, study=text))
    with pytest.raises(StudyError) as raised:
        findings_of(pipeline.lake, pipeline.engine, "")
    assert str(raised.value).startswith(f'chart.sql ("Acknowledged"): {told}')


def test_of_each_variant_one_run_is_named_and_then_a_further_one(findings):
    assert [(each.run_id, each.seed) for each in findings.worst] == [(6, 3), (7, 3), (4, 2)]
    assert findings.worst[0].why.endswith(" events")
    assert findings.worst[0].at == 2_000_000


@pytest.mark.slow
def test_the_command_does_the_run_again(findings):
    worst = findings.worst[1]
    words = shlex.split(worst.command)
    assert words[0] == "ottla"
    done = ottla(*words[1:])
    assert f"digest {worst.digest} " in done.stdout


def test_without_a_say_the_worst_runs_are_those_that_broke_failed_lost_or_stood_still(pipeline):
    plain = parse(KILLED.partition("[worst]")[0])
    worst = worst_runs(plain, pipeline.engine)
    assert len({each.variant for each in worst}) == 2
    assert len(worst) == 3
    (longest,) = pipeline.engine.rows("SELECT MAX(total_us) / 1E3 AS ms FROM failovers")
    assert f"{longest['ms']:,.0f} ms" in worst[0].why
    assert worst[0].at is not None


def test_runs_are_looked_at_until_there_are_three_stories():
    """With a thousand seeds the worst thousand are those of one variant; the second tells what the
    first has told."""
    text = TINY.replace("acks = [1, -1]", "acks = [1, -1]\nin_flight = [1, 5]")
    worst = '[worst]\nsql = "SELECT run_id FROM runs ORDER BY variant, run_id"\ntext = "{run_id}"'
    engine = open_engine("duckdb", jobs=1)
    engine.make(
        "runs",
        "SELECT i AS run_id, i // 4 AS seed, i % 4 AS variant, "
        "CASE WHEN i % 4 < 2 THEN 7 ELSE i END AS digest FROM range(4000) AS t(i)",
    )
    found = worst_runs(parse(f"{text}\n{worst}"), engine)
    engine.close()
    assert [each.run_id for each in found] == [0, 2, 3]


@pytest.mark.parametrize(
    ("grid", "order", "named"),
    [
        ("acks = [-1]", "run_id", [0, 2, 3]),
        ("acks = [1, -1]", "run_id % 2, run_id", [0, 2, 1]),
        ("acks = [1, -1]\nin_flight = [1, 5]", "run_id % 4, run_id", [0, 1, 2]),
    ],
)
def test_where_there_are_fewer_variants_than_room_further_runs_are_named(duck, grid, order, named):
    """A study of one variant showed one run, whatever its others had done. With one variant here,
    run 1 tells the story of run 0."""
    worst = f'[worst]\nsql = "SELECT run_id FROM runs ORDER BY {order}"\ntext = "{{run_id}}"'
    duck.make(
        "runs",
        "SELECT i AS run_id, i AS seed, 0 AS variant, "
        f"CASE WHEN i = 1 AND '{order}' = 'run_id' THEN 0 ELSE i END AS digest "
        "FROM range(1000) AS t(i)",
    )
    text = TINY.replace("acks = [1, -1]", grid)
    assert [each.run_id for each in worst_runs(parse(f"{text}\n{worst}"), duck)] == named


def test_a_run_that_failed_says_why(duck):
    plain = {"variant": 0, "seed": 0, "broke": 0}
    put(duck, SILVER, "failovers", [])
    put(duck, SILVER, "runs", [
        plain | {"run_id": 0, "verdict": "ok", "lost": 2},
        plain | {"run_id": 1, "verdict": "failed", "reason": "sim-I09 at event 7: so", "seed": 1},
        plain | {"run_id": 2, "verdict": "failed", "noticed": "sim-I24", "lost": 0, "digest": 2},
    ])  # fmt: skip
    why = {each.run_id: each.why for each in worst_runs(parse(TINY), duck)}
    idle = "longest without a leader that serves: 0 ms"
    unseen = "ended before its logs were read"
    any_lost = "(any in 1 of 2 runs; with 95 % confidence at most 98 in 100 runs lose any)"
    assert why == {
        1: f"verdict failed: sim-I09 at event 7: so; {unseen}; {idle}",
        2: f"verdict failed: sim-I24; 0 acknowledged records lost {any_lost}; {idle}",
        0: f"verdict ok; 2 acknowledged records lost; {idle}",
    }


def test_a_run_whose_history_is_another_ones_is_not_told_twice(pipeline, monkeypatch):
    rows = pipeline.engine.rows

    def alike(sql):
        found = [dict(each) for each in rows(sql)]
        return [{**each, "digest": 7} if "digest" in each else each for each in found]

    monkeypatch.setattr(pipeline.engine, "rows", alike)
    assert [each.run_id for each in worst_runs(parse(KILLED), pipeline.engine)] == [6]


@pytest.mark.slow
def test_the_report_is_one_file_with_a_page_beside_it_for_each_of_them(findings, tmp_path):
    report = tmp_path / "report.html"
    size = write(findings, parse(KILLED), report)
    text = report.read_text(encoding="utf-8")
    assert size == len(text.encode()) < 1_000_000
    assert text.count('<svg class="glance"') == text.count('<svg class="strip"') / 6 == 3
    for each in findings.worst:
        beside = (tmp_path / "worst" / f"run{each.run_id}.html").read_text(encoding="utf-8")
        assert each.digest in beside
    assert not list(tmp_path.glob("*.unfinished"))


@pytest.mark.slow
def test_a_page_that_an_earlier_report_had_is_taken_away(findings, tmp_path):
    beside = tmp_path / "worst"
    beside.mkdir()
    for name in ("run6.html", "run99.html", "notes.html"):
        (beside / name).write_text("of an earlier report, but for the notes")
    for _ in range(2):
        write(findings, parse(KILLED), tmp_path / "report.html")
        ours = {"run6.html", "run7.html", "run4.html"}
        assert {each.name for each in beside.iterdir()} == {*ours, "notes.html"}


@pytest.mark.slow
def test_the_report_tells_who_made_each_stage_and_is_the_same_twice(tmp_path, monkeypatch):
    """Gone on with at another commit, by another engine, it tells both."""
    monkeypatch.setattr(origin, "commit_here", lambda: "aaa+changes")
    study(tmp_path).engine.close()
    for each in ("bronze/wave=00001", "gold/losses"):
        shutil.rmtree(tmp_path / each)
    monkeypatch.setattr(origin, "commit_here", lambda: "bbb")
    other = open_engine("duckdb", jobs=2)
    lake = study(tmp_path, engine=other).lake
    found = findings_of(lake, other, "ottla study run tiny")
    write(found, parse(TINY), lake.report)
    text = lake.report.read_bytes()
    again = findings_of(study(tmp_path, engine=other).lake, other, "ottla study run tiny")
    write(again, parse(TINY), lake.report)
    other.close()
    assert lake.report.read_bytes() == text
    made_by = {each.name: each.made_by for each in found.stages}
    one = f"{other.described.removesuffix('2')}1, at commit aaa+changes"
    two = f"{other.described}, at commit bbb"
    assert made_by["sweep"] == f"{one} (2 of 3 folders); {two} (1 of 3 folders)"
    assert made_by["silver"] == made_by["judge"] == one
    assert made_by["gold"].startswith(f"{one} (")
    assert f"; {two} (1 of " in made_by["gold"]
    assert made_by["sweep"] in text.decode()


@pytest.mark.slow
def test_a_run_that_is_no_longer_what_it_was_is_not_drawn(tmp_path):
    worst = Worst(0, 0, "", "", "", "0123456789abcdef")
    with pytest.raises(
        NotTheSameError, match=r"run 0: digest .* now, 0123456789abcdef in the study"
    ):
        picture_of(parse(KILLED), worst, tmp_path)
