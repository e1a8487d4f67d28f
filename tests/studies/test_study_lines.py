"""Lines of variants in a study's file, its faults, and what is worst: each as it is read.

What would make two variants one, or one that nobody could name, is one line that says so; so is a
fault that there is not, and nodes too far apart for a leader.
"""

import pytest

from ottla.sim.studies.study import StudyError, parse, read

HEAD = """
name = "lines"
title = "t"
question = "q"
seeds = 1
[answer]
sql = "SELECT COUNT(*) AS n FROM runs"
text = "{n}"
[settings]
in_flight = 3
"""
LINES = """
[[variant]]
label = "one at a time"
in_flight = 1
[[variant]]
label = "lags"
rtt_us = 2000
"""
GRID = """
[grid]
acks = [1, -1]
failure = ["all lose power"]
"""


def test_a_line_that_leaves_a_setting_out_has_it_as_all_runs_or_by_default():
    one, lags = parse(HEAD + LINES).variants
    assert (one.config.in_flight, one.config.rtt_us) == (1, 400)
    assert (lags.config.in_flight, lags.config.rtt_us) == (3, 2000)
    assert list(one.cells) == list(lags.cells)
    assert lags.cells == {"label": "lags", "in_flight": 3, "rtt_us": 2000}


def test_a_label_stands_for_the_settings_of_its_line_and_only_for_them():
    labels = [each.label for each in parse(HEAD + LINES + GRID).variants]
    assert labels[:2] == [
        "one at a time, acks=1, all lose power",
        "one at a time, acks=-1, all lose power",
    ]
    assert {each.line for each in parse(HEAD + LINES + GRID).variants} == {"one at a time", "lags"}
    (alone,) = parse(HEAD).variants
    assert (alone.label, alone.line) == ("as it is", "")


def test_what_is_worst_may_be_said():
    assert parse(HEAD).worst is None
    worst = (
        '[worst]\nsql = "SELECT run_id, lost FROM runs ORDER BY lost DESC"\ntext = "{lost} lost"\n'
    )
    asked = parse(HEAD + worst).worst
    assert asked is not None
    assert asked.text == "{lost} lost"
    with pytest.raises(StudyError, match=r"worst\.text is missing"):
        parse(HEAD + '[worst]\nsql = "SELECT 1 FROM runs"\n')


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (
            LINES.replace("lags", "one at a time"),
            "variant: two are called 'one at a time'; write another label",
        ),
        (
            LINES.replace("rtt_us = 2000", "in_flight = 1"),
            "variant: 'one at a time' and 'lags' are the same settings; leave one out",
        ),
        ("[grid]\nacks = [1, 1]\n", "grid.acks has 1 twice; leave one of them out"),
        (LINES.replace("lags", ""), "variant.label is ''; write a name for people"),
        (LINES.replace("lags", " "), "variant.label is ' '; write a name for people"),
        (LINES.replace('"lags"', "3"), "variant.label is 3; write a name for people"),
        (
            '[grid]\nlabel = ["a"]\n',
            "label is no setting; it names a [[variant]], so write it there",
        ),
        ('label = "a"\n', "label is no setting; it names a [[variant]], so write it there"),
    ],
)
def test_variants_that_nobody_could_tell_apart_are_refused(more, told):
    with pytest.raises(StudyError) as refused:
        parse(HEAD + more)
    assert str(refused.value) == told


def test_a_default_that_is_said_is_a_variant_of_its_own_in_a_swarm():
    lines = '[[variant]]\nlabel = "drawn"\n[[variant]]\nlabel = "said"\nrtt_us = 400\n'
    assert len(parse(SWARM + lines).variants) == 2
    with pytest.raises(StudyError, match="are the same settings"):
        parse(HEAD + lines)


def test_a_file_may_begin_with_a_mark_of_bytes(tmp_path):
    file = tmp_path / "marked.toml"
    file.write_text(HEAD, encoding="utf-8-sig")
    assert read(str(file)).text == HEAD


SWARM = HEAD.replace("seeds = 1", "seeds = 1\nswarm = true")


@pytest.mark.parametrize(
    "faults", ['faults = "kill pover"\n', '[grid]\nfaults = ["kill", "pover"]\n']
)
def test_a_fault_that_there_is_not_is_refused_when_the_file_is_read(faults):
    with pytest.raises(StudyError) as refused:
        parse(SWARM + faults)
    assert str(refused.value).startswith(
        "settings: faults: no such fault: pover; did you mean power?"
    )
    assert "\n" not in str(refused.value)


def test_a_fault_that_needs_more_nodes_is_refused_when_the_file_is_read():
    with pytest.raises(StudyError) as refused:
        parse(f'{SWARM}nodes = 3\nfaults = "ring"\n')
    assert str(refused.value) == (
        "settings: faults: nodes is 3, but ring needs 4: set more, or leave that fault out"
    )


@pytest.mark.parametrize("setting", ['faults = "kill"', "fault_every_ms = 500"])
def test_faults_that_no_nemesis_would_bring_are_refused(setting):
    assert len(parse(f"{SWARM}{setting}\n").variants) == 1
    name = setting.partition(" ")[0]
    with pytest.raises(StudyError, match=f"^settings: {name} is .*; without swarm there is no nem"):
        parse(f"{HEAD}{setting}\n")


def test_nodes_too_far_apart_for_a_leader_are_refused_when_the_file_is_read():
    """Each run would be a breakdown."""
    with pytest.raises(StudyError) as refused:
        parse(HEAD + "[grid]\nrtt_us = [1_000, 2_000_000]\n")
    assert str(refused.value) == (
        "settings: election_timeout_ms is 500, but the nearest majority of nodes 1, 2, 3 is 2000 "
        "ms apart, there and back: no leader could stay"
    )


@pytest.mark.parametrize(
    "more",
    [
        'load_ms = 6_999\nfailure = "all lose power"\n',
        'load_ms = 6_999\n[grid]\nfailure = ["none", "all lose power"]\n',
        'failure = "all lose power"\n[grid]\nload_ms = [7_000, 6_999]\n',
        '[[variant]]\nlabel = "a"\nload_ms = 6_999\nfailure = "all lose power"\n',
    ],
)
def test_a_load_that_is_over_before_the_failure_is_refused_when_the_file_is_read(more):
    """Its report would say what was lost to a failure that never was."""
    with pytest.raises(StudyError) as refused:
        parse(HEAD + more)
    assert str(refused.value) == (
        "failure 'all lose power' strikes twice, up to 2 s and 7 s after the start: "
        "load_ms is 6999; 7000 at least"
    )
    parse(HEAD + more.replace("6_999", "7_001"))
