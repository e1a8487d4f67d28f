"""What the topics of a run are called."""

from dataclasses import replace

from compare_kit import every_case, written
from ottla.broker.topics.names import name_refusal
from ottla.compare.brokers import names_of


def test_no_two_cases_share_a_topic():
    """Cases of one name in two folders did, and the second may find what is still being deleted."""
    names = [each for case in every_case() for each in names_of(case, "0").values()]
    assert len(names) == len(set(names)) > 200


def test_a_file_may_be_called_anything(tmp_path):
    """A blank in the name of a user's file made a name that no topic can have."""
    absent = "absent = ['" + "b" * 80 + "']\n"
    case = written(tmp_path, absent + "[[steps]]\nproduce = {}\n")
    for name in ("my rules/ä b.v2", "x" * 255):
        named = names_of(replace(case, name=name), "01234567")
        assert [name_refusal(each) for each in named.values()] == ["", ""]
