"""Mistakes in a study's file: one line says the key, what stands there, and what to write.

Each is told before anything is run. Names of several words are in quotes, values are as TOML has
them, and nothing is in the words of a parser or of Python.
"""

import pytest

from ottla.sim.studies.binding import check_queries
from ottla.sim.studies.findings import table_of
from ottla.sim.studies.sentences import filled
from ottla.sim.studies.study import StudyError, parse, read
from studies_tiny import TINY


def told(before, after):
    """What is said of a study with a part that is another."""
    assert before in TINY
    with pytest.raises(StudyError) as refused:
        check_queries(parse(TINY.replace(before, after, 1)))
    line = str(refused.value)
    assert "\n" not in line
    return line


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        ("seeds = 4", 'seeds = "4"', "seeds is '4'; write a whole number"),
        ("seeds = 4", "seeds = true", "seeds is true; write a whole number"),
        ("seeds = 4", "seeds = 0", "seeds is 0; write 1 at least"),
        ("seeds = 4", "seeds = 4\nswarm = 1", "swarm is 1; write true or false"),
        ('"A tiny study"', "3", 'title is 3; write a text, in "quotes"'),
        ("[settings]", "settings = 3\n[x]", "settings is 3; write [settings]"),
        ("[answer]", "[[answer]]", "answer is a list of blocks; write [answer]"),
        ("[answer]", "[table]\n[answer]", "table is a block of keys; write [[table]]"),
        (
            "seeds = 4",
            'seeds = 4\ntable = ["x"]',
            "table is 'x'; write [[table]], with title, sql below it",
        ),
        ("seeds = 4\n", "", "study: seeds is missing; write a whole number"),
        ("seeds = 4", "seeds = 4\nswram = true", "study: no such key: swram; did you mean swarm?"),
        ("text =", "txt =", "answer: no such key: txt; did you mean text?"),
        ('"{runs} runs."', "7", 'answer.text is 7; write a text, in "quotes"'),
        ('"tiny"', '"a, b"', "name is 'a, b'; write small letters, digits and hyphens"),
        ("records = 12", 'records = "12"', "settings: records is '12'; a whole number is expected"),
        ("records = 12", "records = true", "settings: records is true; a whole number is expected"),
        ("records = 12", "recods = 12", "settings: no such setting: recods; did you mean records?"),
        ("records = 12", '"a b" = 12', "settings: no such setting: 'a b'"),
    ],
)
def test_a_wrong_key_or_type_says_what_to_write(before, after, line):
    assert told(before, after) == line


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ("[]", "grid.acks has no value; write one at least, or leave acks out"),
        ("1", "grid.acks is 1; write a list, such as [1]"),
        ("[1, -1, 1]\nin_flight = [1, 2]", "grid.acks has 1 twice; leave one of them out"),
        ("[1, true]", "settings: acks is true; a whole number is expected"),
        ("[1]\nrecords = [1]", "records is in [grid] and in [settings]; leave one of them out"),
    ],
)
def test_a_grid_names_the_setting_and_the_value(values, line):
    assert told("[1, -1]", values) == line


def test_names_with_spaces_and_commas_are_told_apart():
    line = told("[1, -1]", '[1]\nfailure = ["the leader, dead"]')
    assert line.startswith("failure is 'the leader, dead'; write one of none, 'a follower is k")
    assert ", 'a follower lags, the leader loses power', " in line
    with pytest.raises(StudyError, match=r"no column 'n'; there are 'so many, in all', lost$"):
        filled("{n}", {"so many, in all": 1, "lost": 2}, "answer")


@pytest.mark.parametrize(
    ("before", "after", "key"),
    [
        ('"A tiny study"', '""', "title"),
        ('"Is anything lost?"', '" "', "question"),
        ('"{runs} runs."', '""', "answer.text"),
        ("[answer]", '[[table]]\ntitle = ""\nsql = "SELECT 1 AS a"\n[answer]', "table.title"),
    ],
)
def test_a_heading_that_is_empty_is_refused(before, after, key):
    assert told(before, after) == f"{key} is empty; write what the report is to say there"


def test_a_study_that_ran_with_an_empty_heading_is_still_read():
    """Or its folder could not be gone on with once the heading is mended."""
    assert parse(TINY.replace('"A tiny study"', '""')).title == ""


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("{} runs", "{} names no column; write {runs}"),
        ("{runs:zz} runs", "{:zz} is no format of a number; leave it out, or write {:,} or {:.1f}"),
        ("{runs runs", "braces go around the name of a column, as in {runs}; write {{ and }}"),
    ],
)
def test_a_sentence_that_cannot_be_filled_says_how_it_is_written(text, line):
    assert told("{runs} runs.", text).startswith(f"answer.text: {line}")


def test_a_file_that_is_not_utf_8_says_which_line(tmp_path):
    path = tmp_path / "of old.toml"
    path.write_bytes(TINY.replace("A tiny", "Une étude,").encode("latin-1"))
    with pytest.raises(StudyError) as refused:
        read(str(path))
    assert str(refused.value) == f"study '{path}': line 3 is not UTF-8; save the file as UTF-8"


def test_a_name_that_is_no_study_is_in_quotes_where_it_is_several_words(tmp_path):
    with pytest.raises(StudyError, match=r"^no such study: 'a, b'; there are acks, "):
        read("a, b")
    for path in (tmp_path, tmp_path / "none.toml", ""):
        with pytest.raises(StudyError, match=r"^study .*; name a TOML file$"):
            read(str(path))


def test_numbers_are_shown_with_the_digits_that_count():
    row = {"sum": 0.1 + 0.2, "far": 1e30, "near": 1e-9, "whole": 2**62}
    (cells,) = table_of("t", [row]).rows
    assert cells == ("0.3", "1e+30", "1e-09", "4,611,686,018,427,387,904")
    text = "{sum}, {far}, {near}, {whole}, {sum:.2f}"
    assert filled(text, row, "answer") == "0.3, 1e+30, 1e-09, 4611686018427387904, 0.30"
