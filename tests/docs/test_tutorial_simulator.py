"""The simulator's tutorial and how-to, followed by a stranger who types exactly what they say."""

import pytest

import docs_programs


@pytest.mark.slow(seconds=15)
def test_a_stranger_can_follow_the_tutorial(tmp_path):
    assert len(docs_programs.follow("tutorial/find-a-bug.md", tmp_path)) == 6
    shown = docs_programs.run("ottla sim show small.tape --kind ok", tmp_path, 120)
    assert shown.stdout.count("\n") == 1
    page = (tmp_path / "small.html").read_text(encoding="utf-8")
    assert "first bad event" in page
    assert "ack before commit" in page


@pytest.mark.slow(seconds=15)
def test_a_stranger_can_try_a_bug_of_ones_own(tmp_path):
    assert len(docs_programs.follow("how-to/try-a-bug-of-your-own.md", tmp_path)) == 4


@pytest.mark.slow(seconds=15)
def test_a_stranger_can_extend_the_simulator(tmp_path):
    assert len(docs_programs.follow("how-to/extend-the-simulator.md", tmp_path)) == 8
    for command, told in (
        ("ottla sim explain 0 --plugin waits.py", "failed: my-short-waits at event"),
        ("ottla sim mutants M07 --seeds 1 --plugin waits.py", "M07 "),
    ):
        assert told in docs_programs.run(command, tmp_path, 120).stdout
