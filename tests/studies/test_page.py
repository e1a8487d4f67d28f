"""The page of a study: one file that needs nothing else, whatever the findings say.

What is drawn is held by numbers: where a whisker ends, how long a bar is, how far apart dots are.
How it looks is for eyes: in the light, in the dark, on paper, on a telephone.
"""

import re
from dataclasses import replace
from html import escape
from html.parser import HTMLParser
from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest

import studies_findings as made_up
from ottla.report.page.chart import certainty, draw
from ottla.report.study.page import Picture, page
from ottla.sim.studies.findings import Breakdown, chart_of, table_of

VOID = {"meta", "br", "input"}


class Balanced(HTMLParser):
    """Raises where an element is closed that is not the last one opened."""

    def __init__(self):
        super().__init__()
        self.open = []
        self.tags = []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def parsed(text):
    parser = Balanced()
    parser.feed(text)
    assert parser.open == []
    return parser


def pictures(text):
    return [ET.fromstring(each) for each in re.findall(r"<svg.*?</svg>", text, re.DOTALL)]


def marks(picture, tag, kind):
    return [each for each in picture.iter(tag) if (each.get("class") or "").split()[0] == kind]


def test_it_is_one_well_formed_file_that_asks_for_nothing():
    text = page(made_up.findings(), {17: Picture("<svg></svg>", "", "worst/run17.html")})
    parser = parsed(text)
    links = [
        value
        for _, given in parser.tags
        for name, value in given.items()
        if name in {"src", "href"}
    ]
    assert links == ["worst/run17.html"]
    assert not re.search(r"url\((?!#)|@import|https?:", text)
    assert len(text.encode()) < 1_000_000


def test_a_picture_that_needs_a_page_is_not_the_first_thing_shown():
    """On paper the first page was half empty before it."""
    wide, tall = made_up.CHARTS[2], made_up.CHARTS[1]
    for charts, order in (
        ((tall, wide), ("Losses", "Killed", "Latency", "Empty")),
        ((wide, tall), ("Latency", "Killed", "Losses", "Empty")),
    ):
        heads = re.findall(r"<h2>(\w+)", page(made_up.findings(charts=charts), {}))
        assert tuple(heads[:4]) == order


def test_text_is_text_wherever_it_stands():
    text = page(made_up.findings(), {})
    assert "<script>alert" not in text
    assert text.count("&lt;script&gt;alert") >= 8
    assert "script" not in {tag for tag, _ in parsed(text).tags}


def test_everything_that_was_found_is_on_it():
    findings = made_up.findings()
    text = page(findings, {})
    cells = re.findall(r'<td class="[^"]*">(.*?)</td>', text)
    for table in (*findings.tables, findings.verdicts):
        for row in table.rows:
            for cell in row:
                assert cell.replace("'", "&#x27;") in cells
    assert len(pictures(text)) == len([each for each in findings.charts if each.series])
    assert "ottla sim run --seed 3" in text
    assert "0123456789abcdef" in text
    judged = (
        "650 of 700 runs were judged in SQL: all that were not ok, and of the others 5 %, drawn"
    )
    assert judged in text
    assert "Per 1,000 seeds (35,000 runs): 95 min 25 s" in text.replace("1 h 35 min", "95 min 25 s")


def test_runs_that_came_to_no_end_are_said_first():
    named = Breakdown(9, "acks=1", f"KeyError: {made_up.BITING}", "ottla sim run --seed 9")
    text = page(made_up.findings(broke=3, breakdowns=(named,)), {})
    assert "3 of 700 runs broke" in text
    assert "3 runs came to no end" in text
    assert f"KeyError: {escape(made_up.BITING)}" in text
    assert "ottla sim run --seed 9" in text
    assert "And 2 more" in text
    assert "650 of 697 runs were judged in SQL" in text
    assert "1 run came to no end" in page(made_up.findings(broke=1, breakdowns=(named,)), {})
    assert "runs broke" not in page(made_up.findings(), {})


def test_the_bill_says_what_is_not_on_it():
    text = page(made_up.findings(), {})
    assert "Not counted are opening the engine, drawing this page, and work that a process" in text


def test_who_made_a_stage_is_told_where_it_is_kept():
    text = page(made_up.findings(), {})
    assert "<dt>sweep by</dt><dd>duckdb 1.4, --jobs 2, at commit abcdef0123456789</dd>" in text
    assert "silver by" not in text


def test_a_worst_run_that_broke_says_why_it_has_no_picture():
    broken = replace(made_up.findings().worst[0], digest="", why="the run broke: no")
    text = page(made_up.findings(worst=(broken,)), {})
    assert "It came to no end, so it has no digest, and no history to draw a picture of" in text
    assert "ottla sim run --seed 3" in text
    assert "digest </p>" not in text
    broke = page(made_up.findings(broke=1), {})
    assert "without a history there is no picture: the command shows where a run breaks" in broke


def test_when_all_are_judged_and_nothing_is_broken_it_says_so():
    findings = made_up.findings(judged=700, verdicts=table_of("verdicts", []))
    text = page(findings, {})
    all_of_them = "All 700 runs were judged in SQL: all that were not ok, and of the others 5 %,"
    assert all_of_them in text
    assert "No invariant is broken: with 95 % confidence at most " in text


def test_when_all_were_to_be_judged_no_share_is_told():
    text = page(made_up.findings(judged=700, share=1.0), {})
    assert "All 700 runs were judged in SQL. On each of them" in text
    assert "<dt>judged in SQL</dt><dd>all</dd>" in text
    assert "of the others" not in text


def test_where_none_was_judged_nothing_is_claimed():
    findings = made_up.findings(judged=0, share=0.0, verdicts=table_of("verdicts", []))
    text = page(findings, {})
    none = "None of 700 runs was judged in SQL: all were ok, and of these it was to be 0 %"
    assert none in text
    assert "<dd>all that were not ok, and 0 % of the others</dd>" in text
    assert "say the same" not in text
    assert "is broken" not in text


def test_a_picture_without_intervals_says_why_where_one_seed_was_run():
    row = {"series": "s", "x": "a", "y": 10}
    plain = chart_of("t", "bars", ("x", "y"), [row])
    ranged = chart_of("t", "bars", ("x", "y"), [{**row, "low": 5, "high": 15}])
    said = "Of one seed nobody can say how far a figure may be off."
    assert page(made_up.findings(charts=(plain,), seeds=1), {}).count(said) == 1
    assert said not in page(made_up.findings(charts=(plain,)), {})
    assert said not in page(made_up.findings(charts=(ranged,), seeds=1), {})


def test_points_without_an_interval_are_explained_below_the_picture():
    def said(*spans, published=False):
        rows = [
            {"series": "s", "x": place, "y": 10, "low": low, "high": high}
            for place, (low, high) in enumerate(spans)
        ]
        if published:
            rows.append({**rows[0], "series": "theirs", "low": None, "high": None})
            rows[-1]["published"] = True
        return certainty(chart_of("t", "lines", ("x", "y"), rows))

    sure, unsure = (5, 15), (None, None)
    few = "too few runs for one, or runs that all gave the same."
    all_of_them = "Whiskers and bands are 95 % intervals."
    assert said(unsure, unsure) == f"No 95 % interval is drawn: each point has {few}"
    assert said(sure, unsure) == f"{all_of_them} Points without one have {few}"
    assert said(sure, sure) == said(sure, sure, published=True) == all_of_them
    counts = chart_of("t", "lines", ("x", "y"), [{"series": "s", "x": 1, "y": 10}])
    assert certainty(counts) == ""
    few_runs = [{"series": "s", "x": 1, "y": 10, "low": None, "high": None}]
    report = made_up.findings(charts=(chart_of("t", "lines", ("x", "y"), few_runs),))
    assert f"each point has {few}" in page(report, {})


def test_whiskers_over_the_same_place_stand_apart():
    rows = [
        {"series": name, "x": x, "y": 10, "low": 5, "high": 15} for name in "abc" for x in (1, 2)
    ]
    (picture,) = pictures(draw(chart_of("t", "lines", ("x", "y"), rows)))
    dots = [float(each.get("cx")) for each in marks(picture, "circle", "dot")]
    whiskers = [
        float(re.findall(r"[\d.]+", each.get("d"))[0]) + 4
        for each in marks(picture, "path", "whisker")
    ]
    assert whiskers == pytest.approx(dots, abs=0.2)
    assert len(set(dots)) == 6
    first = sorted(dots)[:3]
    assert [b - a for a, b in pairwise(first)] == pytest.approx([7, 7], abs=0.2)


def test_whiskers_end_where_intervals_do():
    rows = [
        {"series": "s", "x": "a", "y": 10, "low": 0, "high": 20},
        {"series": "s", "x": "b", "y": 20, "low": None, "high": None},
    ]
    (picture,) = pictures(draw(chart_of("t", "bars", ("x", "y"), rows)))
    (whisker,) = marks(picture, "path", "whisker")
    ends = [float(each) for each in re.findall(r"[\d.]+", whisker.get("d"))]  # x y 8 x y, then V
    short, tall = marks(picture, "rect", "bar")
    bottom = float(short.get("y")) + float(short.get("height"))
    assert ends[1] == pytest.approx(bottom, abs=0.2)
    assert ends[5] == pytest.approx(float(tall.get("y")), abs=0.2)


def test_more_names_than_fit_side_by_side_lie_below_each_other():
    rows = made_up.many_bars()
    (picture,) = pictures(draw(chart_of("t", "bars", ("mutant", "percent"), rows)))
    bars = marks(picture, "rect", "bar")
    assert len({each.get("x") for each in bars}) == 1
    assert len({each.get("y") for each in bars}) == len(rows)
    widths = [float(each.get("width")) for each in bars]
    assert widths[9] == pytest.approx(10 * widths[0], rel=0.02)


def test_numbers_that_lie_far_apart_are_drawn_in_equal_factors():
    rows = [{"series": "s", "x": 10.0**n, "y": 2 * 10.0**n} for n in range(4)]
    (picture,) = pictures(draw(chart_of("t", "lines", ("x", "y"), rows)))
    at = [
        (float(each.get("cx")), float(each.get("cy"))) for each in marks(picture, "circle", "dot")
    ]
    steps = [(round(b[0] - a[0]), round(b[1] - a[1])) for a, b in pairwise(at)]
    assert len(set(steps)) == 1
    assert steps[0][0] > 0 > steps[0][1]


def test_a_line_with_many_points_has_a_band():
    (picture,) = pictures(draw(chart_of("t", "lines", ("x", "y"), made_up.growth())))
    assert len(marks(picture, "polygon", "uncertain")) == 1
    assert not marks(picture, "path", "whisker")


def test_a_chart_without_rows_says_so():
    assert (
        draw(chart_of("t", "bars", ("x", "y"), []))
        == '<p class="fine">There is nothing to draw.</p>'
    )


def test_a_line_that_others_lie_upon_is_wider_than_they_are():
    def rows(name, factor):
        return [{"series": name, "x": x, "y": x * factor} for x in (1, 2, 3)]

    told = [*rows("below", 1.0), *rows("apart", 2.0), *rows("above", 1.001)]
    (picture,) = pictures(draw(chart_of("t", "lines", ("x", "y"), told)))
    below, apart, above = marks(picture, "polyline", "series")
    assert float(below.get("style").removeprefix("stroke-width: ")) > 2
    assert apart.get("style") is above.get("style") is None


def test_a_table_without_rows_says_so_and_short_words_stay_on_one_line():
    text = page(made_up.findings(), {})
    assert text.count("None in these runs.") == 1
    assert '<td class="word">all, minimum 3</td>' in text
    assert '<td class="">a follower lags, the leader loses power</td>' in text


def test_pictures_of_runs_come_with_how_they_are_read():
    drawn = page(made_up.findings(), {17: Picture("<svg></svg>", "", "")})
    assert "nobody leads" in drawn
    assert "nobody leads" not in page(made_up.findings(), {})
