"""Producer ids are unique for ever: across nodes, restarts, repeated answers, new controllers.

The machine at the end keeps every id ever handed out and lets answers be lost, late and repeated,
nodes restart with empty memory, and controllers come back with nothing but their snapshot.
"""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from ottla.idempotency.id_blocks import BLOCK_SIZE, LOW_WATER, IdBlock, IdBlocks, IdPool
from searches import examples


def drained(pool, count):
    return [pool.take() for _ in range(count)]


def test_blocks_of_1000_follow_each_other():
    blocks = IdBlocks()
    assert blocks.allocate(1) == IdBlock(1, 0, 999)
    assert blocks.allocate(2) == IdBlock(2, 1000, 1999)
    assert blocks.next_id == 2000


def test_a_restored_controller_goes_on_where_the_log_left_it():
    before = IdBlocks()
    before.allocate(1)
    assert IdBlocks(before.next_id).allocate(1) == before.allocate(1)


def test_an_empty_pool_has_nothing_and_asks():
    pool = IdPool()
    assert len(pool) == 0
    assert pool.take() is None
    assert pool.wants_block()


def test_a_pool_asks_once_and_before_it_runs_out():
    pool = IdPool()
    pool.add(IdBlock(1, 0, 999))
    drained(pool, BLOCK_SIZE - LOW_WATER)
    assert not pool.wants_block()
    pool.take()
    assert pool.wants_block()
    pool.asked()
    assert not pool.wants_block()
    pool.failed()
    assert pool.wants_block()
    assert pool.add(IdBlock(1, 5000, 5999))
    assert not pool.wants_block()
    assert drained(pool, LOW_WATER) == [*range(901, 1000), 5000]
    assert len(pool) == 999


def test_the_last_id_of_a_block_is_followed_by_nothing_until_the_next_comes():
    pool = IdPool()
    pool.add(IdBlock(1, 0, 999))
    assert drained(pool, 1001) == [*range(1000), None]
    pool.add(IdBlock(1, 3000, 3999))
    assert pool.take() == 3000


def test_an_answer_that_comes_twice_gives_nothing():
    pool = IdPool()
    assert pool.add(IdBlock(1, 1000, 1999))
    assert not pool.add(IdBlock(1, 1000, 1999))
    assert not pool.add(IdBlock(1, 0, 999)), "older than what was taken in: abandoned"
    assert not pool.add(IdBlock(1, 1999, 2998)), "begins with an id that is taken"
    assert len(pool) == 1000


class IdMachine(RuleBasedStateMachine):
    """Three nodes and a controller whose log survives everything (sim-S27)."""

    def __init__(self):
        super().__init__()
        self.blocks = IdBlocks()
        self.pools = {node: IdPool() for node in (1, 2, 3)}
        self.late = []
        self.given = set()

    @rule(node=st.integers(1, 3), lost=st.booleans())
    def ask(self, node, lost):
        pool = self.pools[node]
        if pool.wants_block():
            pool.asked()
            block = self.blocks.allocate(node)
            self.late.append(block)
            if lost:
                pool.failed()
            else:
                pool.add(block)

    @rule(data=st.data())
    def an_old_answer_arrives_again(self, data):
        if self.late:
            block = data.draw(st.sampled_from(self.late))
            self.pools[block.node].add(block)

    @rule(node=st.integers(1, 3), count=st.integers(1, 700))
    def take(self, node, count):
        taken = [i for i in drained(self.pools[node], count) if i is not None]
        assert len(set(taken)) == len(taken)
        assert not self.given & set(taken), "an id was given out twice"
        self.given |= set(taken)

    @rule(node=st.integers(1, 3))
    def restart_node(self, node):
        """Its memory is gone; what was on its way to it goes to its former life."""
        self.pools[node] = IdPool()
        self.late = [block for block in self.late if block.node != node]

    @rule()
    def another_controller_leads(self):
        self.blocks = IdBlocks(self.blocks.next_id)


TestIdMachine = IdMachine.TestCase
TestIdMachine.settings = settings(max_examples=examples(40), stateful_step_count=30, deadline=None)
