"""Shrinking keeps the difference, leaves out whatever it does not need, and tries no more than it
may."""

from hypothesis import given
from hypothesis import strategies as st

from ottla.compare.fuzz.shrinking import Shrinker
from ottla.compare.fuzz.sketch import sketch_of

MOST = 400


def sketch(*steps):
    return sketch_of("A rule", {"t": {"partitions": 2}, "u": {}}, ["x"], list(steps))


def needing(*numbers):
    """Shows the difference if steps with these offsets are there, in order, the last one last."""

    def shows(candidate):
        left = list(numbers)
        for place, step in enumerate(candidate["steps"], 1):
            if left and step.get("fetch", {}).get("offset") == left[0]:
                left.pop(0)
                if not left:
                    return {**candidate, "steps": candidate["steps"][:place]}
        return None

    return shows


@given(
    st.integers(1, 60).flatmap(
        lambda many: st.tuples(
            st.just(many), st.sets(st.integers(2, 1 + many), min_size=1, max_size=4)
        )
    )
)
def test_exactly_the_steps_that_are_needed_are_left(told):
    many, numbers = told
    needed = sorted(numbers)
    whole = sketch(*({"fetch": {"offset": each, "max_bytes": 3}} for each in range(2, 2 + many)))
    shows = needing(*needed)
    cut = shows(whole)
    shrinker = Shrinker(cut, shows, 2000)
    best = shrinker.run()
    assert [each["fetch"] for each in best["steps"]] == [{"offset": each} for each in needed]
    assert best["topics"] == {}
    assert best["absent"] == []


@given(st.lists(st.integers(0, 9), min_size=2, max_size=40), st.integers(1, 30))
def test_what_is_left_always_shows_it_and_no_more_is_tried_than_allowed(offsets, most):
    shows = needing(offsets[len(offsets) // 2], offsets[-1])
    cut = shows(sketch(*({"fetch": {"offset": each}} for each in offsets)))
    if cut is None:
        return
    shrinker = Shrinker(cut, shows, most)
    best = shrinker.run()
    assert shows(best) == best
    assert shrinker.replays <= most


def test_a_first_step_is_not_pipelined():
    def shows(candidate):
        assert "pipelined" not in candidate["steps"][0]
        return candidate if candidate["steps"][-1] == {"fetch": {}, "pipelined": True} else None

    whole = sketch({"fetch": {"offset": 1}}, {"fetch": {}}, {"fetch": {}, "pipelined": True})
    assert len(Shrinker(whole, shows, MOST).run()["steps"]) == 2


def test_values_become_plain():
    def shows(candidate):
        batch = candidate["steps"][-1].get("produce", {})
        return candidate if batch.get("epoch", 0) > 0 and "wrong" in batch else None

    batch = {"producer": 9, "epoch": 5, "records": 3, "codec": "gzip", "wrong": {"crc": 1}}
    best = Shrinker(sketch({"produce": batch, "connection": "b"}), shows, MOST).run()
    assert best["steps"] == [{"produce": {"epoch": 1, "wrong": {}}}]
