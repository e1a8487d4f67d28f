"""The rules on deferred work and on `docs/not-implemented.md`, with planted violations."""

import pytest

from tidy import docs
from tidy.source import Source

HEAD = "# Title\n\n| what | why | test |\n|---|---|---|\n"


@pytest.fixture
def checkout(tmp_path):
    (tmp_path / "tests").mkdir()
    code = "def test_it(): ...\ndef helper(): ...\nclass TestIt:\n    def test_inner(self): ...\n"
    (tmp_path / "tests" / "test_x.py").write_text(code, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    "row",
    [
        "| transactions | not asked for | `tests/test_x.py::test_it` |",
        "| transactions | not asked for | tests/test_x.py::test_it[case] |",
        "| transactions | not asked for | tests/test_x.py::TestIt::test_inner |",
    ],
)
def test_a_refusal_with_a_test_passes(checkout, row):
    assert list(docs.unproven(checkout, HEAD + row)) == []


@pytest.mark.parametrize(
    "row",
    [
        "| transactions | not asked for | |",
        "| transactions | not asked for | tests/test_x.py |",
        "| transactions | not asked for | tests/test_x.py::test_gone |",
        "| transactions | not asked for | tests/test_x.py::helper |",
        "| transactions | not asked for | tests/test_x.py::TestIt |",
        "| transactions | not asked for | tests/test_y.py::test_it |",
        "| transactions | | tests/test_x.py::test_it |",
        "| | not asked for | tests/test_x.py::test_it |",
    ],
)
def test_a_refusal_without_reason_or_test_is_found(checkout, row):
    (violation,) = docs.unproven(checkout, HEAD + row)
    assert violation.line == 5


def test_a_row_of_other_shape_is_an_error():
    with pytest.raises(ValueError, match="2 cells"):
        docs.refusals(HEAD + "| transactions | not asked for |")


@pytest.mark.parametrize(
    ("code", "count"),
    [
        ("x = 1  # TODO: later", 1),
        ("x = 1  # FIXME(unheard of)", 1),
        ("# TODO(transactions) and then TODO", 1),
        ("x = 1  # TODO(transactions): once they exist", 0),
        ("x = 1  # TODO(`transactions`)", 0),
        ("x = 'TODO in a string is data'", 0),
        ("TODOS = []  # the TODOS of a person", 0),
    ],
)
def test_deferred_work_names_a_refusal(code, count):
    found = list(docs.deferred(Source("broker/x.py", code), frozenset({"transactions"})))
    assert len(found) == count
