"""Statements in the order in which they need each other, several at once if an engine can.

Spark plans a query in one thread and executes it in others. With one query at a time, cores are
idle while it plans, which for small tables is most of the time. DuckDB uses all cores for one
query, so it gets one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from graphlib import TopologicalSorter
from typing import Protocol

from ottla.sim.studies.run_interruptible import end

_READ = re.compile(r"\b(?:FROM|JOIN)\s+(\w+)")


class Worker(Protocol):
    """The part of an engine that is used here: `ottla.sim.studies.engine.Engine`."""

    at_once: int

    def interrupt(self) -> None:
        """Interrupt what other threads run."""


def needs(statements: Mapping[str, str]) -> dict[str, set[str]]:
    """By name, which others of these statements each statement reads."""
    return {
        name: {each for each in _READ.findall(text) if each in statements and each != name}
        for name, text in statements.items()
    }


def in_order(
    engine: Worker, statements: Mapping[str, str], do: Callable[[str], object]
) -> Iterator[str]:
    """`do` each statement, by name, once all that it reads is done; yields names as they are done.
    The first error ends it: running statements are interrupted, and no other is begun."""
    order = TopologicalSorter(needs(statements))
    order.prepare()
    running: dict[Future[object], str] = {}
    with ThreadPoolExecutor(engine.at_once) as threads:
        try:
            while order.is_active():
                for name in order.get_ready():
                    running[threads.submit(do, name)] = name
                over, _ = wait(running, return_when=FIRST_COMPLETED)
                for each in over:
                    name = running.pop(each)
                    each.result()
                    order.done(name)
                    yield name
        except BaseException:
            threads.shutdown(wait=False, cancel_futures=True)
            end(running, engine.interrupt)  # otherwise the threads would finish their statements
            raise
