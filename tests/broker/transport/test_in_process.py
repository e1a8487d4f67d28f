"""The in-process network: order, delay, faults by rule, and what is counted.

Without a delay it needs no event loop. With one, tests send on a running loop and wait a few
milliseconds; they look at order and fate, not at exact times.
"""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.broker.transport.in_process import Network

DELAY = 2_000


class Inbox(list[tuple[int, object]]):
    """Keeps what a node received, with its sender."""

    def receive(self, sender, message):
        self.append((sender, message))


def attached(network, *nodes):
    inboxes = {node: Inbox() for node in nodes}
    for node, inbox in inboxes.items():
        network.attach(node, inbox.receive)
    return inboxes


@pytest.fixture
def network():
    return Network()


@pytest.fixture
def inboxes(network):
    return attached(network, 1, 2, 3)


def test_without_delay_a_message_is_there_when_send_returns(network, inboxes):
    network.send(1, 2, "a")
    assert inboxes[2] == [(1, "a")]


def test_the_message_itself_arrives_not_a_copy(network, inboxes):
    message = ["records"]
    network.send(1, 2, message)
    assert inboxes[2][0][1] is message


def test_messages_to_detached_nodes_are_dropped_and_counted(network, inboxes):
    network.detach(2)
    network.send(1, 2, "a")
    network.send(1, 9, b"b")
    assert inboxes[2] == []
    assert network.dropped == {"bytes": 1, "str": 1}


@pytest.mark.usefixtures("inboxes")
def test_delivered_messages_are_counted_by_type(network):
    for message in ("a", "b", 1.0):
        network.send(1, 2, message)
    network.cut(1, 2)
    network.send(1, 2, "c")
    network.send(2, 1, "d")
    assert network.delivered == {"float": 1, "str": 3}
    assert network.dropped == {"str": 1}


def test_a_cut_has_one_direction(network, inboxes):
    network.cut(1, 2)
    network.send(1, 2, "a")
    network.send(2, 1, "b")
    network.send(3, 2, "c")
    assert (inboxes[1], inboxes[2]) == ([(2, "b")], [(3, "c")])
    network.heal()
    network.send(1, 2, "d")
    assert inboxes[2] == [(3, "c"), (1, "d")]


def test_an_isolated_node_neither_hears_nor_is_heard(network, inboxes):
    network.isolate(1)
    for sender, to in ((1, 2), (2, 1), (3, 1), (2, 3), (1, 1)):
        network.send(sender, to, "a")
    assert inboxes == {1: [(1, "a")], 2: [], 3: [(2, "a")]}


@pytest.mark.usefixtures("inboxes")
def test_isolation_holds_for_nodes_that_come_later(network):
    network.isolate(1)
    late = attached(network, 4)[4]
    network.send(1, 4, "a")
    assert late == []


def test_healing_one_node_leaves_the_rules_of_others(network, inboxes):
    network.isolate(1)
    network.cut(2, 3)
    network.cut(1, 2)
    network.heal(1)
    network.send(1, 2, "a")
    network.send(2, 3, "b")
    assert (inboxes[2], inboxes[3]) == ([(1, "a")], [])


def test_healing_a_node_ends_cuts_from_it_and_towards_it(network, inboxes):
    network.cut(1, 2)
    network.cut(2, 1)
    network.heal(1)
    network.send(1, 2, "a")
    network.send(2, 1, "b")
    assert (inboxes[1], inboxes[2]) == ([(2, "b")], [(1, "a")])


def test_two_isolated_nodes_are_healed_one_by_one(network, inboxes):
    network.isolate(1)
    network.isolate(2)
    network.heal(1)
    network.send(1, 2, "a")
    network.send(1, 3, "b")
    assert (inboxes[2], inboxes[3]) == ([], [(1, "b")])


def test_held_messages_arrive_in_order_and_before_newer_ones(network, inboxes):
    network.hold(1, 2)
    for message in "abc":
        network.send(1, 2, message)
    network.send(3, 2, "x")
    assert (inboxes[2], network.held) == ([(3, "x")], 3)
    network.release(1, 2)
    network.send(1, 2, "d")
    assert inboxes[2] == [(3, "x"), (1, "a"), (1, "b"), (1, "c"), (1, "d")]
    assert (network.held, network.delivered) == (0, {"str": 5})


@pytest.mark.usefixtures("inboxes")
def test_what_is_held_is_dropped_when_its_receiver_goes(network):
    network.hold(1, 2)
    network.send(1, 2, "a")
    network.detach(2)
    reborn = attached(network, 2)[2]
    network.send(1, 2, "b")
    network.release(1, 2)
    assert (reborn, network.dropped) == ([(1, "b")], {"str": 1})


def test_held_messages_meet_the_rules_of_their_release(network, inboxes):
    network.hold(1, 2)
    network.send(1, 2, "a")
    network.cut(1, 2)
    network.release(1, 2)
    assert (inboxes[2], network.dropped) == ([], {"str": 1})


def test_release_of_what_is_not_held_changes_nothing(network, inboxes):
    network.release(1, 2)
    network.send(1, 2, "a")
    assert inboxes[2] == [(1, "a")]


def test_a_delayed_message_takes_its_time():
    async def run():
        network = Network(DELAY)
        inbox = attached(network, 2)[2]
        loop = asyncio.get_running_loop()
        arrived = []
        network.attach(3, lambda _sender, _message: arrived.append(loop.time()))
        sent = loop.time()
        network.send(1, 3, "a")
        network.send(1, 2, "b")
        assert inbox == []
        await asyncio.sleep(0.01)
        assert inbox == [(1, "b")]
        assert arrived[0] - sent >= DELAY / 1e6 - loop_resolution()

    asyncio.run(run())


def loop_resolution():
    """An event loop may ring this early."""
    return 0.001


@pytest.mark.slow
@given(st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3), st.booleans()), max_size=20))
def test_delay_keeps_the_order_of_each_pair(sends):
    async def run():
        network = Network(200)
        inboxes = attached(network, 1, 2, 3)
        for number, (sender, to, pause) in enumerate(sends):
            network.send(sender, to, number)
            if pause:
                await asyncio.sleep(0)
        await asyncio.sleep(0.002)
        for to, inbox in inboxes.items():
            expected = [(s, n) for n, (s, t, _pause) in enumerate(sends) if t == to]
            assert inbox == expected

    asyncio.run(run())


def under_way(change):
    """Send, change something while the message travels, and return what arrives."""

    async def run():
        network = Network(DELAY)
        inboxes = attached(network, 1, 2, 3)
        network.send(1, 2, "a")
        change(network)
        await asyncio.sleep(0.01)
        return inboxes[2], network.delivered, network.dropped

    return asyncio.run(run())


def test_what_is_under_way_arrives():
    assert under_way(lambda _network: None) == ([(1, "a")], {"str": 1}, {})


@pytest.mark.parametrize(
    "change",
    [
        lambda network: network.cut(1, 2),
        lambda network: network.isolate(1),
        lambda network: network.isolate(2),
        lambda network: network.detach(2),
    ],
)
def test_what_is_under_way_does_not_arrive_after_a_rule_forbids_it(change):
    assert under_way(change) == ([], {}, {"str": 1})


def test_what_is_under_way_does_not_reach_the_receivers_successor():
    reborn = Inbox()

    def restart(network):
        network.detach(2)
        network.attach(2, reborn.receive)

    assert under_way(restart) == ([], {}, {"str": 1})
    assert reborn == []


def test_a_released_burst_travels_behind_what_was_under_way():
    async def run():
        network = Network(DELAY)
        inbox = attached(network, 2)[2]
        network.send(1, 2, "a")
        network.hold(1, 2)
        network.send(1, 2, "b")
        network.send(3, 2, "x")
        network.release(1, 2)
        network.send(1, 2, "c")
        await asyncio.sleep(0.01)
        assert inbox == [(1, "a"), (3, "x"), (1, "b"), (1, "c")]

    asyncio.run(run())


def test_a_receiver_may_send_while_it_receives():
    async def run():
        network = Network(DELAY)
        answered = asyncio.get_running_loop().create_future()
        network.attach(2, lambda *received: answered.set_result(received))
        network.attach(1, lambda sender, message: network.send(1, sender, message + "!"))
        network.send(2, 1, "a")
        assert await asyncio.wait_for(answered, 10) == (1, "a!")

    asyncio.run(run())
