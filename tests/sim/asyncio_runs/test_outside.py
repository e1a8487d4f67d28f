"""What the broker and aiokafka read of the outside world: all of it stands in the table.

Their sources are gone through for clocks, chance and sets; a new version of aiokafka that reads
something in another module is found here, before a run differs for no visible reason.
"""

import ast
import importlib
import importlib.util
import pkgutil
import random
import time
import uuid
from pathlib import Path

import aiokafka
import pytest

import ottla.broker
import ottla.idempotency
import ottla.log
import ottla.raft
from ottla.sim.asyncio_runs.outside import PATCHES
from ottla.sim.asyncio_runs.run import run
from ottla.sim.chance.outside import GUARDED
from tidy.source import repository

PACKAGES = (aiokafka, ottla.broker, ottla.idempotency, ottla.log, ottla.raft)
READ = {owner.__name__: set(names) for owner, names in GUARDED} | {
    "datetime": {"datetime"},
    "secrets": {"token_hex", "token_bytes", "choice", "randbelow"},
}
ROWS = {(row.module, row.name) for row in PATCHES}
NO_CLOCK = {("ottla.broker.wire.codec", "datetime")}
"""Makes dates of milliseconds, and asks for none."""


def _modules():
    for package in PACKAGES:
        for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            spec = importlib.util.find_spec(found.name)
            if spec is not None and str(spec.origin).endswith(".py"):
                yield found.name, ast.parse(Path(str(spec.origin)).read_text())


def _reads(tree):
    """`(module read, attribute)` of every use of a clock or of chance in a module."""
    bound = {
        (alias.asname or alias.name): node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module in READ
        for alias in node.names
        if alias.name in READ[node.module]
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.attr in READ.get(node.value.id, ()):
                yield node.value.id, node.attr
        elif isinstance(node, ast.Name) and node.id in bound:
            yield bound[node.id], node.id


def _now(tree):
    """Calls that read the wall clock in C: nobody sees them at run time."""
    return [
        ast.unparse(node)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and (node.func.attr in {"utcnow", "today"} or ast.unparse(node.func) == "datetime.now")
    ]


@pytest.mark.slow
def test_every_module_that_reads_a_clock_or_draws_stands_in_the_table():
    found = {(name, read) for name, tree in _modules() for read, _ in _reads(tree)}
    assert len(found) > 15
    missing = sorted(found - ROWS - NO_CLOCK)
    assert missing == []


@pytest.mark.slow
def test_nobody_reads_the_wall_clock_where_no_patch_can_see_it():
    assert [(name, calls) for name, tree in _modules() if (calls := _now(tree))] == []


@pytest.mark.slow
def test_the_table_names_what_is_there():
    for row in PATCHES:
        module = importlib.import_module(row.module)
        used = ast.dump(ast.parse(Path(str(module.__file__)).read_text()))
        name = row.name.rpartition(".")[2]
        assert f"id='{name}'" in used or f"attr='{name}'" in used, row


def test_the_page_lists_the_table():
    page = (repository() / "docs/explanation/deterministic-asyncio.md").read_text()
    lines = [f"| `{row.module}` | `{row.name}` | {row.by} |" for row in PATCHES]
    assert [line for line in page.splitlines() if line in lines] == lines, "\n".join(lines)
    assert page.count("\n| `aiokafka.") + page.count("\n| `ottla.") <= len(lines)


@pytest.mark.slow
def test_sets_of_aiokafka_whose_order_could_show_stand_in_the_table():
    """Where a module makes sets by name; group membership is not served, its sets stay."""
    left = ("aiokafka.admin", "aiokafka.coordinator", "aiokafka.protocol")
    found = {
        (name, node.func.id)
        for name, tree in _modules()
        if name.startswith("aiokafka") and not name.startswith(left)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in {"set", "frozenset"}
    }
    assert sorted(found - ROWS) == [("aiokafka.producer.message_accumulator", "frozenset")]


def test_a_listed_module_reads_virtual_time_and_draws_from_the_seed():
    def program(seed):
        async def main(loop):
            loop.call_later(5, loop.stop)
            from aiokafka import client, conn, producer

            stamp = producer.message_accumulator.BatchBuilder(1000, 0)
            told = stamp.append(timestamp=None, key=None, value=b"x")
            return (
                *(client.time.time(), client.time.monotonic(), conn.time.monotonic()),
                *(
                    client.random.random(),
                    client.random.choice(range(1000)),
                    str(conn.uuid.uuid4()),
                ),
                *(told.timestamp, client.time.strftime("%Y", client.time.gmtime(0))),
            )

        return run(main, seed=seed).result

    one, again, other = program(1), program(1), program(2)
    assert one == again
    assert one[:3] == other[:3] == (1_700_000_000.0, 0.0, 0.0)
    assert one[6:] == (1_700_000_000_000, "1970")
    assert all(a != b for a, b in zip(one[3:6], other[3:6], strict=True))


@pytest.mark.parametrize("method", ["shuffle", "uniform", "sample", "randbytes", "gauss"])
def test_virtual_chance_does_what_random_does(method):
    arguments = {
        "shuffle": ([1, 2, 3],),
        "uniform": (1, 2),
        "sample": (range(10), 3),
        "randbytes": (5,),
        "gauss": (0, 1),
    }[method]

    async def main(_):
        from aiokafka import client

        given = [list(each) if isinstance(each, list) else each for each in arguments]
        return getattr(client.random, method)(*given), given

    assert run(main, seed=3).result == run(main, seed=3).result


def test_a_module_outside_the_table_is_refused_and_named():
    async def main(_):
        importlib.import_module("sim_reads_the_clock").now()

    with pytest.raises(
        Exception, match=r"time.time is refused .*sim_reads_the_clock.py:\d+ in now"
    ):
        run(main)


def test_patches_are_taken_back():
    from aiokafka import client, cluster

    before = client.time, client.random
    run(lambda _: _nothing())
    assert (client.time, client.random) == before == (time, random)
    assert "set" not in vars(cluster)
    assert uuid.uuid4().version == 4


async def _nothing():
    """A program."""
