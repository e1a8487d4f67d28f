"""Ids of topics beside offsets: kept where there are any, and compared where both are known."""

import pytest

from ottla.sim.studies.topics.asked import SourceError
from ottla.sim.studies.topics.identity import joined, parted, same

OFFSETS = {"t": {"0": 3}, "u": {"0": 4}}


@pytest.mark.parametrize("ids", [{}, {"t": "a"}, {"t": "a", "u": "b"}])
def test_offsets_keep_ids_beside_them(ids):
    kept = joined(OFFSETS, ids)
    assert parted(kept) == (OFFSETS, ids)
    assert (kept == OFFSETS) == (not ids), "offsets without ids are as they always were"


def test_an_id_that_is_not_known_is_no_other_one():
    assert same({}, {"t": "a"}) == {"t": "a"}
    assert same({"t": "a"}, {}) == {"t": "a"}
    assert same({"t": "a"}, {"t": "a", "u": "b"}) == {"t": "a", "u": "b"}


def test_another_topic_of_the_same_name_is_told_in_one_line():
    with pytest.raises(SourceError) as refused:
        same({"t": "a"}, {"t": "b"})
    said = str(refused.value)
    assert said.startswith("topic t is another one than was read: it was deleted and created again")
    assert "\n" not in said
