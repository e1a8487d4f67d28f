"""What a run is told is what it gets: round trips of single links, arrivals, what a line carries.

And the swarm leaves alone what its caller set. Runs are plain ones wherever a time is compared, as
a tape without choices gives them.
"""

import tomllib
from collections import Counter
from dataclasses import asdict
from itertools import pairwise

import pytest

from ottla.broker.errors import ConfigError
from ottla.sim.chance.choices import Drawn, Replayed, Tape
from ottla.sim.run import Verdict, run_choices
from ottla.sim.settings.ranges import LEAST_RECORD_BYTES, MAX_SPAN
from ottla.sim.settings.settings import RunConfig
from ottla.sim.settings.settings_file import from_toml
from ottla.sim.settings.swarm import draw
from ottla.sim.whole import run_whole

QUIET = RunConfig(
    profile="reference-strict",
    load_ms=3_000,
    records=60,
    jitter_us=0,
    client_jitter_us=0,
    sync_jitter_us=0,
)


def about(micros):
    """Within the time that nodes take for a turn or two."""
    return pytest.approx(micros, abs=2 * QUIET.turn_us)


def acknowledged_after(config):
    """Micros from the first sending of each batch to its acknowledgement, shortest first, and the
    leader of partition 0."""
    outcome = run_choices(Replayed(Tape()), config, swarm=False)
    assert outcome.verdict is Verdict.OK, outcome.reason
    sent = {row.op: row.t_us for row in outcome.rows if row.kind == "send"}
    ends = {row.op: row.t_us for row in outcome.rows if row.kind == "ok"}
    (leader,) = {row.node for row in outcome.rows if row.kind == "leader" and row.partition == 0}
    return sorted(ends[op] - at for op, at in sent.items()), leader


@pytest.mark.slow
def test_a_slow_link_counts_for_those_who_need_it():
    """A majority of three is the leader and its faster follower."""
    plain, leader = acknowledged_after(QUIET)
    far, near = (node for node in (1, 2, 3) if node != leader)
    one_slow, same = acknowledged_after(QUIET.with_(links=f"{leader}-{far}:40000"))
    assert (one_slow[0], same) == (plain[0], leader)
    both = f"{leader}-{far}:40000 {near}-{leader}:40000"
    both_slow, same = acknowledged_after(QUIET.with_(links=both))
    assert same == leader
    assert both_slow[0] - plain[0] == about(40_000 - QUIET.rtt_us)


@pytest.mark.slow
def test_a_node_that_is_far_from_all_clients():
    plain, leader = acknowledged_after(QUIET)
    slow, same = acknowledged_after(QUIET.with_(links=f"c-{leader}:30000"))
    assert same == leader
    assert slow[0] - plain[0] == about(30_000 - QUIET.client_rtt_us)


def test_clients_have_the_patience_that_the_farthest_node_needs():
    """That node may lead, and then nobody else has what they ask for (seed 23 with the second)."""
    for far in ("c-1:2000000 c-2:1600000 c-3:1600000", "c-1:2000000"):
        assert RunConfig(links=far).client_trip_us == 2_000_000
        assert RunConfig(links=far).patience_ms > 4 * 2_000
        assert draw(Drawn(1), RunConfig(links=far)).request_timeout_ms > 4 * 2_000
    assert RunConfig(links="c-1:10").client_trip_us == RunConfig().client_trip_us


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"rtt_us": 500_000}, "nodes 1, 2, 3 is 500 ms apart, there and back: no leader could"),
        ({"links": "1-2:900000 1-3:900000 2-3:600000"}, "is 600 ms apart"),
        ({"nodes": 5, "links": "1-2:2000000 1-3:2000000 2-3:2000000"}, "of nodes 1, 2, 3 is 2000"),
        ({"sync_us": 499_800}, "a vote among nodes 1, 2, 3 takes 1000 ms, with a sync at both"),
        ({"sync_us": 499_800, "flush": "interval"}, "nobody could be elected"),
    ],
    ids=str,
)
def test_nodes_that_could_elect_no_leader_are_refused(given, told):
    """In a run that draws nothing, and where the election timeout was told."""
    with pytest.raises(ConfigError, match=told):
        run_whole(Drawn(1), QUIET.with_(**given))
    with pytest.raises(ConfigError, match=told):
        from_toml("election_timeout_ms = 500", given)
    assert from_toml("", given).said == set(given)


@pytest.mark.parametrize(
    "given",
    [
        {"rtt_us": 499_000},
        {"links": "1-2:900000 1-3:900000"},
        {"nodes": 5, "replicas": 5, "links": "1-2:2000000 1-3:2000000 2-3:2000000"},
        {"nodes": 1, "replicas": 1, "sync_us": 1_100_000},
        {"nodes": 3, "replicas": 1, "links": "1-2:2000000"},
        {"sync_us": 499_800, "flush": "off"},
    ],
    ids=str,
)
def test_one_that_can_is_not_refused(given):
    assert from_toml("election_timeout_ms = 500", given).said == {"election_timeout_ms", *given}
    outcome, _ = run_whole(Drawn(1), QUIET.with_(load_ms=100, records=2, **given))
    assert "sim-I00" not in {each.invariant for each in outcome.anomalies}, outcome.reason


def test_a_disk_on_which_every_sync_stalls_is_refused_and_never_drawn():
    with pytest.raises(ConfigError, match="sync_stall_ms is 0; 1 to"):
        RunConfig(sync_stall_ms=0)
    with pytest.raises(ConfigError, match="every leader would resign at every sync"):
        RunConfig(sync_us=1_000_001, sync_stall_ms=1_000)
    assert RunConfig(sync_us=2_000_000, sync_stall_ms=1_000, flush="off").sync_stall_ms == 1_000
    quick = RunConfig(sync_stall_ms=1)
    assert {draw(Drawn(seed), quick).sync_us for seed in range(50)} == {0, 300, 1_000}


def test_a_message_has_one_fate():
    with pytest.raises(
        ConfigError, match=r"loss_ppm \+ late_ppm \+ twice_ppm is 1000001; a message"
    ):
        RunConfig(loss_ppm=500_000, late_ppm=300_000, twice_ppm=200_001)
    lossy = RunConfig(loss_ppm=950_000)
    drawn = [draw(Drawn(seed), lossy) for seed in range(50)]
    assert {each.late_ppm for each in drawn} == {0, 10_000, 50_000}
    assert max(each.late_ppm + each.twice_ppm for each in drawn) == 50_000


@pytest.mark.parametrize(
    ("rates", "expected"),
    [
        ((500_000, 100_000, 1_000_000), (0, 5, 1, 4)),
        ((1_000_000, 0, 1_000_000), (0, 10, 0, 0)),
        ((300_000, 200_000, 400_000), (1, 3, 2, 4)),
    ],
)
def test_a_loss_comes_first_where_fates_are_more_than_a_million(rates, expected):
    """A burst of losses beside a rate of others that was told made losses fewer."""
    stream = Drawn(1).stream("link 1>2")
    fates = Counter(stream.fate(rates) for _ in range(10_000))
    assert tuple(round(fates[each] / 1_000) for each in range(4)) == expected


def test_a_link_takes_no_longer_than_any_round_trip_may():
    assert RunConfig(links="1-2:2000000").links
    with pytest.raises(ConfigError, match="links: '1-2:2000001'; 0 to 2000000 are possible"):
        RunConfig(links="1-2:2000001")


@pytest.mark.parametrize("name", ["retry_backoff_ms", "metadata_max_age_ms", "request_timeout_ms"])
def test_clients_wait_at_least_a_moment(name):
    with pytest.raises(ConfigError, match=f"{name} is 0; 1 to"):
        RunConfig().with_(**{name: 0})


@pytest.mark.slow
def test_no_run_stands_still_in_virtual_time():
    """At the shortest spans there are, with a failure: time goes on."""
    spans = {
        **dict.fromkeys(("client_rtt_us", "client_jitter_us", "rtt_us", "jitter_us"), 0),
        **dict.fromkeys(("sync_us", "sync_jitter_us", "turn_us", "delivery_timeout_ms"), 0),
        **dict.fromkeys(("retry_backoff_ms", "metadata_max_age_ms", "request_timeout_ms"), 1),
    }
    config = QUIET.with_(load_ms=7_000, records=20, **spans)
    outcome, _ = run_whole(Drawn(1), config, "all lose power")
    assert "crash" in {row.kind for row in outcome.rows}
    assert outcome.simulated > 3_000_000
    assert outcome.steps < 1_000_000


def test_what_is_drawn_fits_to_links_that_were_told():
    """Three nodes of five may be far from each other; no three replicas of a partition may."""
    far = RunConfig(links="1-2:2000000 1-3:2000000 2-3:2000000")
    drawn = [draw(Drawn(seed), far) for seed in range(50)]
    assert {each.nodes for each in drawn} == {3, 5}
    for each in drawn:
        each.check_elections()
        apart = each.replicas == 2 or each.nodes == each.replicas == 3
        assert each.election_timeout_ms == 20_000 or not apart
    near = RunConfig(links="1-2:9000")
    assert {draw(Drawn(seed), near).election_timeout_ms for seed in range(50)} == {200, 500, 1000}


@pytest.mark.parametrize(
    "given",
    [
        {"nodes": 7, "replicas": 7, "partitions": 4},
        {"nodes": 5, "replicas": 5, "min_insync": 3},
        {"nodes": 1, "replicas": 1},
        {"rtt_us": 140_000, "election_timeout_ms": 600},
        {"rtt_us": 140_000, "sync_us": 70_000},
        {"heartbeat_ms": 20, "in_flight": 7, "batch_records": 100},
        {"links": "1-2:9000"},
    ],
    ids=str,
)
def test_the_swarm_leaves_alone_what_was_set(given):
    base = RunConfig(**given)
    drawn = [draw(Drawn(seed), base) for seed in range(50)]
    assert all(asdict(each) | given == asdict(each) for each in drawn)
    assert len({each.name for each in drawn}) > 40
    for each in drawn:
        slowest = max(each.rtt_us, each.jitter_us, each.sync_us)
        assert "election_timeout_ms" in given or slowest <= each.election_timeout_ms * 100


@pytest.mark.parametrize(
    "told",
    [
        "in_flight = 5\nloss_ppm = 0\nfault_every_ms = 0",
        "leader_epochs = true",
        "heartbeat_ms = 200",
        "heartbeat_ms = 50\nelection_timeout_ms = 500",
        "client_rtt_us = 2000000",
        "request_timeout_ms = 10\nload_ms = 9",
        "rtt_us = 2000000",
    ],
    ids=str,
)
def test_what_was_said_stays_even_if_it_is_the_default(told):
    """And what is drawn beside it fits to it."""
    base = from_toml(told)
    given = tomllib.loads(told)
    drawn = [draw(Drawn(seed), base) for seed in range(50)]
    assert all(asdict(each) | given == asdict(each) for each in drawn)
    assert len({each.name for each in drawn}) > 40
    assert from_toml(base.told()).said == base.said == set(given)
    assert [draw(Drawn(seed), from_toml(base.told())) for seed in range(5)] == drawn[:5]
    assert all(not each.said for each in drawn)


def test_a_setting_is_nothing_else_than_what_it_is_set_to():
    """That it was said decides what a swarm draws, not what a run is."""
    said = from_toml("nodes = 3")
    assert (said, said.name) == (RunConfig(), RunConfig().name)
    assert said.told() == "nodes = 3"
    assert RunConfig().told() == ""


@pytest.mark.parametrize(
    ("told", "waits_ms"),
    [
        ({}, 60_000),
        ({"request_timeout_ms": 30_000}, 120_000),
        ({"client_bytes_per_ms": 1, "record_bytes": 10_000}, 14_550_000),
        ({"election_timeout_ms": 20_000, "heartbeat_ms": 50}, 400_000),
        ({"settle_ms": 5_000, "request_timeout_ms": 30_000}, 5_000),
        ({"links": "c-1:2000000"}, 1_520_334),
        ({"client_jitter_us": 1_000_000}, 1_520_334),
        ({"partitions": 40, "client_rtt_us": 50_000, "fetch_bytes": 300}, 796_621),
    ],
)
def test_the_end_of_a_run_has_as_long_as_its_settings_need(told, waits_ms):
    """A bound of a minute failed sound runs whose clients wait for half of one, or whose line
    carries little."""
    assert RunConfig(**told).bound_ms == waits_ms


@pytest.mark.parametrize("told", ["rtt_us = 2000000", "replica_lag_ms = 50\nmin_insync = 2"])
def test_followers_can_be_in_sync_with_what_is_drawn(told):
    """They were heard of less often than they had to be."""
    for drawn in [draw(Drawn(seed), from_toml(told)) for seed in range(100)]:
        assert drawn.replica_lag_ms >= 2 * drawn.heartbeat_ms
        assert drawn.replica_lag_ms * 1_000 >= 2 * drawn.rtt_us
        drawn.check_lag()


@pytest.mark.parametrize(
    "told", ["", "delivery_timeout_ms = 20", "delivery_timeout_ms = 2000", "rtt_us = 2000000"]
)
def test_no_request_outlives_its_batch(told):
    """And both live as long as an answer takes, whatever is drawn beside what was told."""
    base = from_toml(told)
    for drawn in [draw(Drawn(seed), base) for seed in range(100)]:
        assert drawn.request_timeout_ms <= drawn.delivery_timeout_ms
        if told:
            assert drawn.patience_ms <= drawn.delivery_timeout_ms


@pytest.mark.parametrize(
    ("text", "nodes", "replicas"),
    [
        ("replicas = 5", 5, 5),
        ("replicas = 2", 3, 2),
        ("nodes = 1", 1, 1),
        ("nodes = 5", 5, 3),
        ("nodes = 5\nreplicas = 4", 5, 4),
        ("min_insync = 5", 5, 5),
        ("min_insync = 3", 3, 3),
        ("min_insync = 2\nnodes = 5", 5, 3),
    ],
)
def test_nodes_and_replicas_fit_each_other_where_only_one_was_said(text, nodes, replicas):
    given = from_toml(text)
    assert (given.nodes, given.replicas) == (nodes, replicas)
    assert given.said == frozenset(each.split()[0] for each in text.splitlines())
    assert from_toml(given.told()) == given
    for drawn in [draw(Drawn(seed), given) for seed in range(20)]:
        assert drawn.min_insync <= drawn.replicas <= drawn.nodes
        for name in given.said:
            assert getattr(drawn, name) == getattr(given, name)


def test_nodes_and_replicas_that_were_both_said_and_contradict_are_refused():
    with pytest.raises(ConfigError, match="replicas is 5, but there are 3 nodes"):
        from_toml("nodes = 3", {"replicas": 5})


def test_a_mutant_is_named_as_in_code_or_as_on_pages():
    assert from_toml('mutants = "sim-M06 M07"') == from_toml('mutants = "M06 M07"')
    with pytest.raises(ConfigError, match="mutants: there is no M99; one of M01 M02"):
        from_toml('mutants = "sim-M99"')


def handed(arrivals):
    config = QUIET.with_(arrivals=arrivals, producers=1, records=60, load_ms=6_000)
    rows = run_choices(Drawn(5), config, swarm=False).rows
    return [row.t_us for row in rows if row.kind == "inv"]


@pytest.mark.slow
def test_records_arrive_in_bursts_evenly_or_at_random():
    """The same number over about the same time."""
    pauses = {
        arrivals: [after - before for before, after in pairwise(handed(arrivals))]
        for arrivals in ("bursts", "even", "random")
    }
    assert set(pauses["even"]) == {100_000}
    assert 0 in pauses["bursts"]
    assert len(set(pauses["random"])) > 40
    assert 4_000_000 < sum(pauses["random"]) < 8_000_000


def test_a_line_carries_one_request_after_the_other():
    """Two requests of more than 100 bytes each, a byte in a millisecond."""
    config = QUIET.with_(producers=1, client_model="java", idempotent=False, consumers=0)
    config = config.with_(records=8, load_ms=1, arrivals="even", request_timeout_ms=60_000)
    plain = run_choices(Replayed(Tape()), config, swarm=False).rows
    slow = run_choices(Replayed(Tape()), config.with_(client_bytes_per_ms=1), swarm=False).rows
    first, last = (
        [max(row.t_us for row in rows if row.kind == kind) for kind in ("send", "ok")]
        for rows in (plain, slow)
    )
    assert last[1] - last[0] > 2 * 100_000 > first[1] - first[0]


@pytest.mark.parametrize("nodes", range(1, 8))
def test_one_to_seven_replicas(nodes):
    config = QUIET.with_(nodes=nodes, replicas=nodes, load_ms=500, records=20, partitions=2)
    outcome = run_choices(Drawn(nodes), config, swarm=False)
    assert outcome.verdict is Verdict.OK, outcome.reason
    final = {(row.partition, row.node) for row in outcome.rows if row.kind == "final"}
    assert len(final) == 2 * nodes


@pytest.mark.parametrize("most", [1, 100, 107])
def test_what_no_record_fits_into_draws_the_smallest_records(most):
    """The swarm had drawn records that are too small for any run, and every seed was an error."""
    base = RunConfig().with_(max_message_bytes=most)
    drawn = {draw(Drawn(seed), base).record_bytes for seed in range(20)}
    assert drawn == {LEAST_RECORD_BYTES}


@pytest.mark.parametrize("name", ["retry_backoff_ms", "election_timeout_ms"])
def test_the_longest_span_that_can_be_told_can_be_drawn_with(name):
    base = RunConfig().with_(**{name: MAX_SPAN})
    assert {draw(Drawn(seed), base).delivery_timeout_ms for seed in range(20)} == {MAX_SPAN}
