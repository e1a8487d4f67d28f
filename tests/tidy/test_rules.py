"""Every rule of `tidy` fires on a planted violation and stays quiet on the honest version.

The snippets are data, so the rules do not see them as code of this file. `BAD` and `GOOD` map a
rule to (path, code) pairs; a rule without both is a failing test, so none can be added unproven.
"""

import pytest

from tidy.rules import RULES
from tidy.source import Source

CORE = "raft/planted.py"
SHELL = "broker/planted.py"
TEST = "tests/broker/test_planted.py"

SIMULATOR = (
    *(
        "chance/choices",
        "world/clocks",
        "world/disks",
        "world/frames",
        "world/kernel",
        "world/life",
    ),
    *("world/reference_model", "ending/probes", "world/listener", "settings/swarm"),
)


def function(lines: int, docstring: int = 0) -> str:
    said = ['    """said' + "\n    more" * (docstring - 1) + '"""'] if docstring else []
    return "\n".join(["def f():", *said, *["    x = 1"] * (lines - 1)])


def module(lines: int, docstring: str) -> str:
    head = f'"""{docstring}"""\n'
    return head + "x = 1\n" * (lines - head.count("\n"))


SET_BOUND_IN_INIT = """
class C:
    def __init__(self):
        self.votes: set[int] = g()

    def f(self):
        for vote in self.votes:
            print(vote)
"""
SET_FROM_A_METHOD = """
class C:
    def f(self) -> frozenset[int]:
        return g()

    def h(self):
        return tuple(self.f())
"""

BAD = {
    "module_length": [
        (SHELL, module(302, "Long.")),
        (TEST, module(302, "Long.")),
        (SHELL, module(299, "Long.") + "y = (\n    1,\n)\n"),
    ],
    "line_length": [(SHELL, "x = 1  # " + "x" * 92)],
    "function_length": [
        (SHELL, function(51)),
        (SHELL, function(51, docstring=9)),
        (TEST, function(51).replace("def", "async def")),
    ],
    "positional_parameters": [
        (SHELL, "def f(a, b, c, d, e, g): ..."),
        (SHELL, "def f(a, b, /, c, d, e, g): ..."),
        (SHELL, "class C:\n    def f(self, a, b, c, d, e, g): ..."),
        (SHELL, "class C:\n    @staticmethod\n    def f(a, b, c, d, e, g): ..."),
    ],
    "docstrings": [
        (SHELL, "x = 1"),
        (TEST, "x = 1"),
        (SHELL, '"""M."""\ndef f(): ...'),
        (SHELL, '"""M."""\nclass C: ...'),
        (SHELL, '"""M."""\nclass C:\n    """C."""\n    def f(self): ...'),
        ("tests/lib/planted.py", '"""M."""\ndef f(): ...'),
    ],
    "theory_of_operation": [
        (SHELL, module(101, "One line.")),
        (TEST, module(101, "Two\n\nlines.")),
    ],
    "bare_init": [
        ("broker/__init__.py", '"""Doc."""\nfrom ottla.broker.cluster.cluster import Cluster'),
        ("broker/wire/api/__init__.py", '"""Doc."""\nif True:\n    pass'),
    ],
    "absolute": [
        (SHELL, "from . import x"),
        (TEST, "from .x import y"),
        (CORE, "from ..log import types"),
    ],
    "below_the_root": [
        (SHELL, "import ottla"),
        (SHELL, "from ottla import Cluster, __version__"),
        (CORE, "from ottla import raft"),
        ("sim/world/world.py", "from ottla.cli import main"),
        ("sim/world/world.py", "import ottla.pytest_plugin"),
    ],
    "confined": [
        (SHELL, "import lmdb"),
        ("log/store.py", "def f():\n    import lmdb"),
        ("broker/wire/connection.py", "from kio.schema import x"),
        ("broker/wire/api/fetch.py", "from kio.schema import x"),
        ("broker/transport/in_process.py", "import grpc.aio"),
        ("src/ottla/__init__.py", "import typer"),
        ("sim/world/world.py", "import pyspark.sql"),
    ],
    "untouched": [
        (TEST, "def test(broker):\n    assert broker._state == 1"),
        (TEST, "def test(broker):\n    broker.log._state = 1"),
        (TEST, "from ottla.raft.core import _helper"),
        (TEST, "getattr(broker, '_state')"),
        (TEST, "monkeypatch.setattr(broker, '_state', 1)"),
    ],
    "any_has_a_reason": [
        (SHELL, "Entity: TypeAlias = Any"),
        (CORE, "# Why.\ndef f(x: dict[str, Any]): ..."),
    ],
    "old_names": [
        (SHELL, "class Seat: ..."),
        (TEST, "def restless(): ..."),
        (SHELL, "def f(x):\n    return x.people"),
        ("sim/nemesis/moments.py", "x = 1"),
        (SHELL, "from ottla.sim.nemesis import moments"),
        (SHELL, "import ottla.broker.lookout"),
        (SHELL, "apart(work, stop)"),
    ],
    "no_world": [
        (CORE, "import time"),
        (CORE, "def f():\n    from random import Random"),
        ("idempotency/x/y.py", "import asyncio.events"),
        ("broker/partition/partition.py", "import uuid"),
        ("broker/partition/in_sync.py", "from concurrent.futures import Future"),
        ("broker/wire/pipeline.py", "print('here')"),
        (CORE, "order = hash(name)"),
        ("log/record_batch.py", "import time"),
        ("log/offset_index.py", "from datetime import UTC, datetime"),
        ("log/memory_disk.py", "from threading import Thread"),
        ("log/memory_disk.py", "import threading"),
        ("sim/chance/choices.py", "from random import Random, random"),
        ("sim/world/kernel.py", "from time import monotonic"),
        ("sim/world/disks.py", "open('x')"),
        (CORE, "order = object.__hash__(name)"),
        (CORE, "order = name.__hash__()"),
        (CORE, "clock = modules.import_module('time')"),
        ("log/inflate.py", "import importlib"),
        ("log/inflate.py", "from importlib import import_module, reload"),
        ("sim/mutants/mutant.py", "order = name.__hash__()"),
        ("sim/world/world.py", "import gc"),
        ("sim/world/world.py", "from weakref import WeakSet"),
        ("sim/world/world.py", "import platform"),
    ],
    "no_waiting": [
        (CORE, "async def f(): ..."),
        (CORE, "await g()"),
        ("broker/turn/replica.py", "async with g: ..."),
        ("broker/controller/controller.py", "async for x in g: ..."),
        ("broker/heartbeats/heartbeats.py", "[x async for x in g]"),
        ("log/recovery.py", "async def f(): ..."),
        ("sim/world/kernel.py", "async def f(): ..."),
        ("sim/world/life.py", "async def f():\n    await g()"),
        ("broker/driver/group_commit.py", "async def poll(): ..."),
        ("broker/wire/host.py", "async def start():\n    await g()"),
        ("sim/world/listener.py", "async def f():\n    async with g: ..."),
    ],
    "no_set_order": [
        (CORE, "for x in {1, 2}: ..."),
        (CORE, "y = [x for x in set(z)]"),
        (CORE, "y = {x: 1 for x in frozenset(z)}"),
        (CORE, "y = list({x for x in z})"),
        (CORE, "first, second = {1, 2}"),
        (CORE, "y = [*set(z)]"),
        (CORE, "y = ','.join(set(z))"),
        (CORE, "y = next(iter(set(z)))"),
        (CORE, "for x in a.keys() - b: ..."),
        (CORE, "for x in a.union(b): ..."),
        (CORE, "def f(votes: set[int]):\n    for vote in votes: ..."),
        (CORE, "def f(votes: frozenset[int] | None):\n    return tuple(votes)"),
        (CORE, "def f(z):\n    votes = set(z)\n    return votes.pop()"),
        (CORE, "votes = {1, 2}\ndef f():\n    for vote in votes: ..."),
        (CORE, "class C:\n    votes: set[int]\n    def f(self):\n        return list(self.votes)"),
        (CORE, SET_BOUND_IN_INIT),
        (CORE, "y = sorted({a, b}, key=f)"),
        (CORE, "y = min(set(z), key=f)"),
        (CORE, "def f(votes: set[int]):\n    return max(votes, key=g, default=None)"),
        (CORE, "def f(z) -> set[int]:\n    return {*z}\ndef g(z):\n    return list(f(z))"),
        (CORE, SET_FROM_A_METHOD),
        ("broker/turn/barriers.py", "for ticket in {a, b}: ..."),
        ("broker/driver/fast_append.py", "for x in {1, 2}: ..."),
        ("broker/driver/group_commit.py", "for x in {1, 2}: ..."),
        ("log/keys.py", "for x in {1, 2}: ..."),
        *((f"sim/{name}.py", "for x in {1, 2}: ...") for name in SIMULATOR),
    ],
}

GOOD = {
    "module_length": [
        (SHELL, module(301, "Long.")),
        (SHELL, module(400, "Long." + "\nlonger" * 99)),
        (SHELL, module(301, "Long.") + "\n# Why.\n" * 99),
        (SHELL, module(301, "Long.") + '"""What x is."""\n' * 99),
    ],
    "line_length": [(SHELL, "x = 1  # " + "x" * 91)],
    "function_length": [
        (SHELL, function(50)),
        (SHELL, function(50, docstring=9)),
        (SHELL, function(49) + "\n\n    # Why.\n    # Why not.\n    return x"),
    ],
    "positional_parameters": [
        (SHELL, "def f(a, b, c, d, e): ..."),
        (SHELL, "def f(a, b, c, d, e, *, g, h, i): ..."),
        (SHELL, "class C:\n    def f(self, a, b, c, d, e): ..."),
        (SHELL, "class C:\n    @classmethod\n    def f(cls, a, b, c, d, e): ..."),
    ],
    "docstrings": [
        (SHELL, '"""M."""\ndef f():\n    """F."""\ndef _g(): ...\nclass _C:\n    def f(self): ...'),
        (SHELL, '"""M."""\nclass C:\n    """C."""\n    @x.setter\n    def x(self, v): ...'),
        (SHELL, '"""M."""\nclass C:\n    """C."""\n    @typing.override\n    def x(self, v): ...'),
        (TEST, '"""M."""\ndef test_f(): ...'),
    ],
    "theory_of_operation": [
        (SHELL, module(100, "One line.")),
        (SHELL, module(101, "Three\n\nlines\nsaid.")),
    ],
    "bare_init": [
        ("broker/__init__.py", '"""Doc."""\nif __name__ != "ottla.broker":\n    raise ImportError'),
        ("broker/wire/api/__init__.py", '"""Doc."""'),
        ("src/ottla/__init__.py", '"""Doc."""\nimport importlib'),
    ],
    "absolute": [(SHELL, "from ottla.log import types")],
    "below_the_root": [
        (SHELL, "from ottla import __version__"),
        (SHELL, "import ottla.log.types\nfrom ottla.raft import roles"),
        ("src/ottla/cli.py", "import ottla.demo"),
        (TEST, "import ottla"),
    ],
    "confined": [
        ("log/lmdb_store.py", "import lmdb"),
        ("broker/wire/codec.py", "import kio.serial"),
        ("broker/control/service.py", "import grpc"),
        ("src/ottla/cli.py", "import typer, rich"),
        ("src/ottla/demo/story.py", "import rich.table"),
        (TEST, "import lmdb, kio, grpc"),
        (SHELL, "import msgpack"),
    ],
    "untouched": [
        (TEST, "class T:\n    def f(self):\n        self._x = 1"),
        (TEST, "assert broker.state.__class__ is int"),
        (TEST, "changed = row._replace(x=1)"),
        (TEST, "getattr(broker, 'state')"),
        (TEST, "_y = x"),
        (SHELL, "assert broker._state == 1"),
    ],
    "any_has_a_reason": [
        (SHELL, "from typing import Any\nEntity: TypeAlias = Any  # made when it runs"),
        ("sim/run.py", "x: Any = 1"),
    ],
    "old_names": [
        (SHELL, '"""Two seats far apart."""\napart = 1\nclass Seating: ...'),
        (SHELL, "def f(scene):\n    return scene.moments"),
        (SHELL, "class HostedReplica: ..."),
    ],
    "no_world": [
        (CORE, "import dataclasses\nfrom collections.abc import Callable"),
        ("broker/wire/server.py", "import time, asyncio"),
        (CORE, "def f(now, print_): return now"),
        ("log/memory_disk.py", "from threading import Event"),
        ("log/lmdb_store.py", "import os\nfrom pathlib import Path"),
        ("log/folder.py", "import os"),
        ("sim/chance/choices.py", "from random import Random"),
        ("sim/run.py", "import gc"),
        ("sim/mutants/mutant.py", "class C:\n    __hash__ = object.__hash__"),
    ],
    "no_waiting": [
        (CORE, "def f():\n    '''Nobody may await here.'''"),
        ("broker/wire/server.py", "async def f():\n    await g()"),
        ("broker/driver/group_commit.py", "async def drained():\n    await g()"),
        ("broker/wire/host.py", "async def start(): ..."),
        ("sim/world/life.py", "async def f(): ..."),
        ("sim/world/listener.py", "async def f(): ..."),
    ],
    "no_set_order": [
        (CORE, "for x in sorted({1, 2}): ..."),
        (CORE, "for x in [1, 2]: ..."),
        (CORE, "y = sorted([1, 2], key=f), max(min(sorted({1, 2}), key=f), len({1, 2}), key=f)"),
        (CORE, "ok = 1 in {1, 2} and len(set(z)) and max({1, 2})"),
        (CORE, "def f(votes: set[int], names: list[int]):\n    for name in names: ..."),
        (CORE, "def f(votes):\n    for vote in votes: ...\ndef g(votes: set[int]): ..."),
        (CORE, "votes = {1}\ndef f(votes: list[int]):\n    for vote in votes: ..."),
        (CORE, "class C:\n    x: set[int]\nclass D:\n    def f(self):\n        return [*self.x]"),
        (CORE, "votes = {}\nfor vote in votes: ...\nfor vote in votes.keys(): ..."),
        (CORE, "def f() -> list[int]: ...\ndef g():\n    return [*f()], sorted(h())"),
        ("broker/wire/server.py", "for x in {1, 2}: ..."),
    ],
}


def cases(table: dict[str, list[tuple[str, str]]]) -> list[object]:
    return [
        pytest.param(name, Source(path, code), id=f"{name}-{number}")
        for name, snippets in table.items()
        for number, (path, code) in enumerate(snippets)
    ]


def test_every_rule_is_proven_both_ways():
    assert set(BAD) == set(GOOD) == set(RULES)


@pytest.mark.parametrize(("rule", "source"), cases(BAD))
def test_rule_fires(rule, source):
    found = list(RULES[rule](source))
    assert len(found) == 1
    assert found[0].path == source.path
    assert 1 <= found[0].line <= len(source.lines)


@pytest.mark.parametrize(("rule", "source"), cases(GOOD))
def test_rule_stays_quiet(rule, source):
    assert list(RULES[rule](source)) == []
