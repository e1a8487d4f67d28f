"""Who waits by looks is patient with what moves, however slowly, and with nothing else."""

import pytest

from clients_patience import move, until


def test_what_moves_now_and_then_is_waited_for_and_what_is_done_ends_it():
    looks = iter(range(40))

    def counts():
        look = next(looks)
        return {"slow": look // 4} if look < 39 else {}

    move("answers", counts, looks=5)
    assert list(looks) == []


def test_one_of_many_that_stands_still_is_named():
    looks = iter(range(1000))
    with pytest.raises(AssertionError, match="answers: b stands still at 7 for 5 looks"):
        move("answers", lambda: {"a": next(looks), "b": 7}, looks=5)


def test_a_condition_that_stays_false_is_named():
    looks = iter([False] * 5)
    with pytest.raises(AssertionError, match="no leader in 5 looks"):
        until("leader", lambda: next(looks), looks=5)
    assert list(looks) == []
