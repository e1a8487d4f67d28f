"""Searches in stored batches share one allowance for each turn of the loop, and take turns."""

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

import log_kit as kit
from ottla.broker.wire.searches import Searches
from ottla.log.build import Codec, NewRecord, build_batch
from ottla.log.errors import RecordsError
from ottla.log.record_walk import SLICE
from ottla.log.records import first_record_at_or_after, record_of_max_timestamp


def note(found, name, what):
    found.append((name, what))


def stored(count):
    return kit.parsed(build_batch([NewRecord(b"v", timestamp=n) for n in range(count)]))


def test_a_large_batch_is_searched_in_slices_and_a_small_one_behind_it_does_not_wait_for_all():
    soon: deque[Callable[[], None]] = deque()
    found: list[Any] = []
    searches = Searches(soon.append)
    large, small, count = stored(5_000), stored(3), 5_000
    for name, batch in (("large", large), ("small", small)):
        search = record_of_max_timestamp(batch, allowance=searches.allowance)
        searches.begin(search, partial(note, found, name))
    assert found == []
    turns = 0
    while soon:
        soon.popleft()()
        turns += 1
        assert searches.allowance.left > -SLICE // 10
    assert found == [("small", (2, 2)), ("large", (count - 1, count - 1))]
    assert turns > 3


def test_a_small_batch_is_searched_at_once_and_a_broken_one_says_so():
    soon: deque[Callable[[], None]] = deque()
    found: list[Any] = []
    searches = Searches(soon.append)
    search = first_record_at_or_after(stored(3), 1, allowance=searches.allowance)
    searches.begin(search, found.append)
    cut = build_batch([b"v"], codec=Codec.GZIP)[:75]
    broken = kit.parsed(kit.with_header(cut, batch_length=len(cut) - 12))
    searches.begin(record_of_max_timestamp(broken, allowance=searches.allowance), found.append)
    assert found[0] == (1, 1)
    assert isinstance(found[1], RecordsError)
    assert not soon
