"""Three replicas, correct idempotent producers, and everything that goes wrong.

Whatever happens: what was acknowledged lies in the log where the answer said, nothing lies there
twice or out of order, no sequence is missing, all replicas know the same producers, every ticket is
answered once and in time, and the high watermark never goes back (promise-R1 to R5, K3, K4).
`broker_core_watch` and `Story.finish` hold the checks; here is only what leads up to them.
"""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from broker_core_nemesis import Story, wander
from broker_core_world import MS, NODES, SECOND, Options
from searches import examples

A_NODE = st.sampled_from(NODES)
A_PRODUCER = st.integers(0, 2)


class Failovers(RuleBasedStateMachine):
    """Rules are the moves of a `Story`; the end of each run looks at everything."""

    story: Story

    @initialize(
        seed=st.integers(0, 1000),
        min_insync=st.sampled_from((1, 2)),
        queue=st.sampled_from((200, 2000, 1 << 20)),
        lag=st.sampled_from((100 * MS, 2 * SECOND)),
    )
    def begin(self, seed, min_insync, queue, lag):
        self.story = Story(
            seed, Options(min_insync=min_insync, leader_queue_bytes=queue, replica_lag=lag)
        )

    @rule(span=st.sampled_from((100, MS, 20 * MS, 200 * MS)))
    def wait(self, span):
        self.story.wait(span)

    @rule(who=A_PRODUCER, count=st.sampled_from((1, 2, 40)))
    def produce(self, who, count):
        self.story.produce(who, count)

    @rule(who=A_PRODUCER)
    def bump(self, who):
        self.story.bump(who)

    @rule(node=A_NODE, acks=st.sampled_from((-1, 0, 1)))
    def produce_plain(self, node, acks):
        self.story.produce_plain(node, acks)

    @rule(node=A_NODE, kind=st.integers(0, 4))
    def read(self, node, kind):
        self.story.read(node, kind)

    @precondition(lambda self: len(self.story.world.lives) == len(NODES))
    @rule(node=A_NODE)
    def crash(self, node):
        self.story.crash(node)

    @rule(node=A_NODE)
    def start(self, node):
        self.story.start(node)

    @rule(node=A_NODE)
    def pause(self, node):
        self.story.pause(node)

    @rule(node=A_NODE)
    def isolate(self, node):
        self.story.isolate(node)

    @rule(one=A_NODE, other=A_NODE)
    def cut(self, one, other):
        self.story.cut(one, other)

    @rule()
    def mend(self):
        self.story.mend()

    @rule(node=A_NODE)
    def slow(self, node):
        self.story.slow(node)

    @rule(to=A_NODE)
    def transfer(self, to):
        self.story.transfer(to)

    @rule(node=A_NODE)
    def step_down(self, node):
        self.story.step_down(node)

    @rule(percent=st.sampled_from((0, 5, 20)))
    def loss(self, percent):
        self.story.loss(percent)

    def teardown(self):
        if hasattr(self, "story"):
            self.story.finish()


TestFailovers = Failovers.TestCase
TestFailovers.settings = settings(
    max_examples=examples(15),
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def wandering(seed: int) -> Story:
    rng = Random(seed)
    options = Options(
        min_insync=rng.choice((1, 1, 2)),
        leader_queue_bytes=rng.choice((200, 2000, 1 << 20)),
        replica_lag=rng.choice((100 * MS, 2 * SECOND)),
    )
    story = Story(seed, options)
    wander(story, rng, rng.choice((100, 300, 600)))
    return story


@pytest.mark.parametrize("seed", range(20))
def test_a_random_life_leaves_a_sound_log(seed):
    wandering(seed).finish()


@pytest.mark.parametrize(
    "seed",
    [
        *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1000, 1150)),
        *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(1150, 1800)),
    ],
)
def test_many_random_lives_leave_sound_logs(seed):
    wandering(seed).finish()


@pytest.mark.slow
def test_the_world_is_as_rough_as_it_claims():
    """Were a kind of history never reached, the tests above would not test it."""
    seen = {"duplicates_answered": 0, "duplicates_parked": 0, "gaps_refused": 0, "step_downs": 0}
    snapshots = 0
    for seed in range(70, 90):
        story = wandering(seed)
        story.finish()
        counts = story.world.counters.as_dict()
        seen = {name: before + counts[name] for name, before in seen.items()}
        disks = story.world.disks.values()
        snapshots += any(image.snapshot for disk in disks for image in disk.images.values())
    assert all(seen.values()), f"{seen}"
    assert snapshots, f"{snapshots} snapshots"
