"""Which files a glob finds, and what the cases in them are called."""

import pytest

from compare_kit import HEAD
from ottla.compare.errors import CaseError
from ottla.compare.finding import load_cases

STEP = "[[steps]]\nproduce = {}\n"


def test_a_file_of_ones_own_is_found_by_a_glob_and_by_its_folder(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "a-rule.toml").write_text(HEAD + STEP, encoding="utf-8")
    assert [each.name for each in load_cases([f"{tmp_path}/mine/*.toml"])] == ["a-rule"]
    assert [each.name for each in load_cases([str(tmp_path)])] == ["mine/a-rule"]


def test_a_glob_may_stand_for_folders_too(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "rule.toml").write_text(HEAD + STEP, encoding="utf-8")
    names = ["a/rule", "b/rule"]
    assert [each.name for each in load_cases([f"{tmp_path}/*/rule.toml"])] == names
    assert [each.name for each in load_cases([f"{tmp_path}/**/*.toml"])] == names


def test_two_files_of_one_name_are_refused(tmp_path):
    """The first was left out without a word."""
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "rule.toml").write_text(HEAD + STEP, encoding="utf-8")
    both = [f"{tmp_path}/{folder}/rule.toml" for folder in ("a", "b")]
    with pytest.raises(CaseError, match=r"b/rule.toml and .*a/rule.toml are both called rule;"):
        load_cases(both)
    assert len(load_cases(both[:1] * 2)) == 1


@pytest.mark.parametrize("glob", ["no/such/*", "", "**.toml", "[.toml", ".toml"])
def test_a_glob_that_finds_nothing_is_refused(tmp_path, monkeypatch, glob):
    """`**.toml` ended in a traceback, and no glob at all was this folder."""
    (tmp_path / "not-a-case").mkdir()
    (tmp_path / "not-a-case" / "some.toml").write_text("x = 1\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CaseError, match="no case and no file matches it"):
        load_cases([glob])


def test_a_case_is_found_by_its_name_and_by_its_folder():
    assert [each.name for each in load_cases(["a-gap-is-refused"])] == [
        "idempotence/a-gap-is-refused"
    ]
    folders = {each.name.partition("/")[0] for each in load_cases(["acks/*", "produce/*"])}
    assert folders == {"acks", "produce"}
