"""`Searches`: searches stored batches for offsets by time, in slices.

**Theory.** A search walks over the records of a batch, which may take as long as the check when the
batch was produced. All searches of a node share one allowance per iteration of the loop. A search
that is not finished goes to the end of the queue.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from ottla.log.errors import RecordsError
from ottla.log.record_walk import SLICE, Allowance
from ottla.log.records import Found, Search

_ASKED = 16
"""The cost of beginning a search, in plain records."""


class Searches:
    """See the module's docstring. `call_soon` calls a function in the next iteration of the
    loop."""

    def __init__(self, call_soon: Callable[[Callable[[], None]], object]):
        self._call_soon = call_soon
        self._queue: deque[tuple[Search, Callable[[Found | RecordsError], None]]] = deque()
        self._planned = False
        self.allowance = Allowance(SLICE)
        """The allowance that all searches must use."""

    def begin(self, search: Search, done: Callable[[Found | RecordsError], None]) -> None:
        """Run `search`, at once if the allowance permits. `done` gets its result or its
        `RecordsError`."""
        self._queue.append((search, done))
        self.allowance.left -= _ASKED
        if not self._planned:
            self._go_on()

    def _go_on(self) -> None:
        queue, allowance = self._queue, self.allowance
        while queue and allowance.left > 0:
            search, done = queue[0]
            try:
                next(search)
            except StopIteration as end:
                queue.popleft()
                done(end.value)
            except RecordsError as error:
                queue.popleft()
                done(error)
            else:
                queue.rotate(-1)
        if queue or allowance.left <= 0:
            self._planned = True
            self._call_soon(self._refill)

    def _refill(self) -> None:
        self._planned = False
        self.allowance.left = SLICE
        self._go_on()
