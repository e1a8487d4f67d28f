"""The simulator sees nodes through their views: the rule holds, fires, and stays quiet."""

import ast

import pytest

from tidy.source import Source, Violation, repository, sources
from tidy.views import INSIDE, through_the_view

SIM = "sim/world/planted.py"
BAD = [
    "x = life.node.runner",
    "def f(runner):\n    return runner.hosted_replicas[0]",
    "def f(hosted):\n    return hosted.replica.core",
    "for each in a.replicas():\n    x = each.machine",
    "class C:\n    def f(self):\n        return self.life.controller_machine",
    "life.watched.on_applied = f",
    "x = getattr(replica, 'core')",
    "x = attrgetter('replica.machine')",
    "from ottla.broker.driver.hosted import HostedReplica",
    "def f():\n    import ottla.broker.driver",
]
GOOD = [
    (SIM, "x = life.node.inspect().replica(group).role"),
    (SIM, "life.node.watch(Watcher(applied=f))"),
    (SIM, "class C(Replica):\n    def f(self):\n        return self.core"),
    (SIM, "from ottla.sim.machine.processes import go_on"),
    (SIM, "from ottla.broker.turn.watcher import Watcher"),
    ("broker/planted.py", "x = life.runner.hosted_replicas[0].replica.core"),
    ("tests/sim/test_planted.py", "x = life.node.runner"),
]


@pytest.fixture(scope="module")
def files() -> list[Source]:
    return sources(repository())


def test_nothing_in_the_simulator_goes_into_a_node(files):
    found: list[Violation] = [each for file in files for each in through_the_view(file)]
    assert "\n".join(map(str, found)) == ""


def test_what_leads_into_a_node_is_called_that_there(files):
    """A name that nobody has any more would guard nothing."""
    own = {
        node.attr
        for source in files
        if source.path.startswith(("broker/node/", "broker/driver/", "broker/turn/"))
        for node in source.nodes
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    }
    assert sorted(INSIDE - own) == []


@pytest.mark.parametrize("code", BAD)
def test_it_fires(code):
    assert len(list(through_the_view(Source(SIM, code)))) == 1


@pytest.mark.parametrize(("path", "code"), GOOD)
def test_it_stays_quiet(path, code):
    assert list(through_the_view(Source(path, code))) == []
