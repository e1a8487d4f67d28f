"""What is done to nodes and paths is what their clients, and what they had been sent, meet."""

from __future__ import annotations

from functools import partial

import pytest

from ottla.sim.scenarios.script import Script
from ottla.sim.world.world import SECOND

BEGUN = """\
> nodes 3 client_rtt_us={}
> producers P=7
> send P A to 1 seq 0
> until answered
"""


def played(commands: str, round_trip: int = 400) -> tuple[Script, list[str]]:
    """A script in which node 1 leads and P is connected to it, and what these commands say."""
    script = Script()
    script.play(BEGUN.format(round_trip))
    before = len(script.out)
    script.play(commands)
    return script, [line for line in script.out[before:] if not line.startswith(">")]


@pytest.mark.parametrize("end", ["hang-up P 1", "reset P 1"])
def test_a_node_that_goes_on_reads_what_it_was_sent_before_its_client_gave_up(end):
    """The news that the client was gone overtook its requests, which no frozen leader ever saw."""
    _, said = played(
        f"> freeze 1\n> send P B to 1 seq 1\n> run 100ms\n> {end}\n> run 100ms\n> thaw 1\n"
        "> run 50ms\n"
    )
    assert "  1: appends B at 1 in term 1" in said
    assert not [line for line in said if "hears" in line]


@pytest.mark.parametrize("end", ["crash 1", "reset P 1"])
def test_nobody_hears_over_a_path_that_is_cut_that_a_connection_is_gone(end):
    """Clients that were cut off from a leader knew at once when it died, and went elsewhere."""
    script, _ = played(f"> hold P 1\n> {end}\n> run 2s\n")
    assert not [row for row in script.world.history.rows if row.kind == "close"]
    script.play("> let P 1\n> run 10ms\n")
    (row,) = [row for row in script.world.history.rows if row.kind == "close"]
    assert (row.node, row.code) == (1, "reset")


def test_nobody_hears_over_a_path_that_is_cut_that_a_node_knows_no_connection():
    """The path was cut when the request had passed and the reset that answers it had not."""
    script, _ = played(
        "> power 1\n> start 1\n> send P B to 1 seq 1\n> run 15ms\n> hold P 1\n> run 2s\n",
        20_000,
    )
    assert not [row for row in script.world.history.rows if row.kind == "close"]
    script.play("> let P 1\n> run 10ms\n")
    assert [row.code for row in script.world.history.rows if row.kind == "close"] == ["reset"]


def test_what_is_due_when_a_clock_has_jumped_is_done_at_once():
    """Replicas were told, and whatever else a node waits for was as late as ever: a request that it
    sent to the controller, a client that it keeps waiting."""
    script, _ = played("")
    world = script.world
    clockwork = world.lives[2].clockwork
    rung: list[int] = []
    now = clockwork.now()
    for seconds in (1, 10, 30):
        clockwork.call_at(now + seconds * SECOND, partial(rung.append, seconds))
    clockwork.call_at(now + SECOND, partial(rung.append, 0))()
    world.jump(2, 20 * SECOND)
    world.kernel.run(world.kernel.now)
    assert rung == [1, 10]
    world.kernel.run(world.kernel.now + 9 * SECOND)
    assert rung == [1, 10]
    world.kernel.run(world.kernel.now + 2 * SECOND)
    assert rung == [1, 10, 30]
