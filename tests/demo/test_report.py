"""The report: self-contained, complete, and safe against what it shows.

A made-up run of four seconds is laid out; its picture must be well-formed XML, so that every mark
can be found in it by its hover title.
"""

import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from ottla.demo.audit import verdict
from ottla.demo.ledger import Ack
from ottla.demo.losses import Dropped, explain, groups
from ottla.demo.picture import Picture
from ottla.demo.report import page, write_report
from ottla.demo.result import Figure, Result
from ottla.demo.settings import DemoSettings
from ottla.demo.stage import Deed, Sample
from ottla.demo.timeline import Change, Reign, Timeline

SECOND = 1_000_000


def timelines():
    """One failover on partition 0, nothing on the others."""
    first = Reign(0, 1, 1, 0, SECOND)
    failover = Change(0, "kill", 1, 2, 2, SECOND, 2 * SECOND)
    yield Timeline([first, Reign(0, 2, 2, 2 * SECOND, 4 * SECOND)], [failover])
    for partition in (1, 2):
        yield Timeline([Reign(partition, 3, 1, 0, 4 * SECOND)], [])


def result(*, violations=(), acks="all", out=Path("out")):
    """A run of four seconds."""
    dropped = Dropped(3 * SECOND, 0, 1, b"p/0/5 ", 5, 9, 1, 2, 2)
    lost = [(0, Ack(b"p/0/5 ", 5)), (0, Ack(b"p/0/6 ", 6))] if acks != "all" else []
    losses = explain(lost, [dropped])
    return Result(
        DemoSettings(acks=acks, out=out),
        [Figure("records <b>", 1234, "", "here & there"), Figure("max", 1000, "ms", "")],
        [verdict("All is well", "everything", []), verdict("And this", "too", violations)],
        list(timelines()),
        [
            Sample(at * SECOND // 2, (1, 3, 3), (at, at, at), (at * 100, at * 50, 0))
            for at in range(9)
        ],
        [Deed(SECOND, 3 * SECOND, "kill", 0, 1, "kill leader 1")],
        losses,
        groups(losses),
        1234,
        0,
        4 * SECOND,
        "a-client 1.0",
    )


def picture(text):
    """The page's SVG as a tree: it must be well-formed."""
    (svg,) = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    return ET.fromstring(svg)


def titles(text):
    return [each.text for each in picture(text).iter("title")]


def test_the_page_needs_nothing_else():
    text = page(result())
    assert not re.search(r"https?://|//cdn|<link|<script|<img|@import|src=", text)
    assert set(re.findall(r"url\(([^)]*)\)", text)) == {"#hatch"}


def test_figures_checks_and_faults_are_all_there():
    text = page(result())
    for part in ("1,234", "All is well", "everything", "kill leader 1", "a-client 1.0"):
        assert part in text
    assert "demo-0: node 2 in term 2 after 1,000 ms" in text
    assert "all checks passed" in text


def test_text_from_elsewhere_is_escaped():
    text = page(result(violations=["<script>alert(1)</script>"]))
    assert "<script>" not in text
    assert "&lt;script&gt;" in text
    assert "records &lt;b&gt;" in text


def test_a_failed_check_is_shown_with_its_evidence():
    text = page(result(violations=["offset 7 is wrong"]))
    assert "checks failed" in text
    assert "offset 7 is wrong" in text
    assert "all checks passed" not in text


def test_the_picture_tells_of_leaders_faults_acks_and_watermarks():
    told = titles(page(result()))
    assert "node 1 led term 1 from 0.00 s to 1.00 s" in told
    assert "no leader for 1,000 ms after kill of node 1; then node 2, term 2" in told
    assert "1: kill leader 1, at 1.00 s" in told
    assert "demo-1: records acknowledged per second" in told
    assert "demo-2: high watermark, 8 at the end" in told


def test_time_after_a_leader_stepped_down_by_itself_is_nobodys():
    made = result()
    reigns = [Reign(1, 3, 1, 0, SECOND), Reign(1, 2, 2, 2 * SECOND, 4 * SECOND)]
    change = Change(1, "hand-over", 3, 2, 2, SECOND, 2 * SECOND)
    made.timelines[1] = Timeline(reigns, [change])
    told = titles(page(made))
    assert "no leader for 1,000 ms after the stepping down of node 3; then node 2, term 2" in told


def test_the_picture_has_room_for_everything():
    tree = picture(page(result()))
    width, height = map(float, tree.get("viewBox").split()[2:])
    for rect in tree.iter("rect"):
        if rect.get("x") is not None:
            assert 0 <= float(rect.get("x")) <= width - float(rect.get("width"))
            assert 0 <= float(rect.get("y")) <= height - float(rect.get("height"))


def test_lost_records_are_marked_and_listed():
    text = page(result(acks="1"))
    assert "1 acknowledged records lost at 3.00 s" in titles(text)
    assert "p/0/5" in text
    assert "not explained" in text
    assert "2 of them are lost" in text


def test_a_page_with_lost_records_has_no_green_headline():
    """It said "all checks passed", in green, over 8,111 lost records."""
    head = page(result(acks="1")).split("</header>")[0]
    assert '<span class="badge bad">2 acknowledged records lost</span>' in head
    assert '<span class="badge good">all checks passed</span>' in page(result())


def test_losing_nothing_in_one_run_says_little_of_others():
    said = "in this run nothing was lost, stored twice or out of order. Of other runs one says"
    assert f"{said} little: with 95 % confidence at most 95 in 100" in page(result())
    lossless = replace(result(acks="1"), losses=[])
    assert "in this run nothing was lost. Of other runs one says little" in lossless.sentence


def test_what_was_so_before_the_beginning_is_so_from_its_beginning_on():
    """A leader led "from -0.00 s"."""
    made = result()
    made.timelines[1] = Timeline([Reign(1, 3, 1, -4_000, 4 * SECOND)], [])
    assert "node 3 led term 1 from 0.00 s to 4.00 s" in titles(page(made))
    assert "-0.00" not in page(made)


def test_a_last_burst_does_not_flatten_what_came_before():
    """Acknowledgements of the last flush made all others a line at the bottom."""
    made = result()
    last = made.samples[-1]
    made.samples[-1] = last._replace(acked=(80_000, 400, 0))
    shown = Picture(made)
    assert shown.top_rate == Picture(result()).top_rate
    assert "\u2191 317.2k" in shown.draw()
    assert "\u2191" not in Picture(result()).draw()


def test_the_report_lies_where_it_was_asked_for(tmp_path):
    folder = tmp_path / "not" / "there"
    path = write_report(result(out=folder))
    assert path == folder / "demo.html"
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")


@pytest.mark.parametrize("seconds", [1, 4, 30, 300])
def test_runs_of_any_length_can_be_drawn(seconds):
    short = result()
    stretched = Result(
        short.settings,
        short.figures,
        short.verdicts,
        [Timeline([Reign(0, 1, 1, 0, seconds * SECOND)], [])] * 3,
        [Sample(seconds * SECOND, (1, 1, 1), (9, 9, 9), (9, 9, 9))],
        [],
        [],
        [],
        9,
        0,
        seconds * SECOND,
        "",
    )
    ticks = [each for each in picture(page(stretched)).iter("text") if each.get("class") == "tick"]
    assert 2 <= sum(each.text.endswith(" s") for each in ticks) <= 16
