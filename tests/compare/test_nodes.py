"""Several nodes: the same steps to a cluster in process, and to one at an address."""

import pytest

from compare_kit import NEW, every_case, loaded
from ottla import Cluster
from ottla.compare import nodes
from ottla.compare.brokers import ProfileBroker
from ottla.compare.errors import CompareError
from ottla.compare.finding import load_cases
from ottla.compare.live import LiveBroker
from ottla.compare.running import Comparison, unoffered

PROFILE = "kafka-4.3"
THREE = f"{NEW}nodes = 3\n"


def play(case, profile=PROFILE):
    broker = ProfileBroker(profile)
    return broker.play(case, broker.versions())


def test_the_same_case_is_played_in_the_same_way_again():
    """To the microsecond, with elections: everything follows from the seed."""
    cases = load_cases(["what-acks-one-confirmed-may-be-lost"])
    first, second = (play(cases[0]) for _ in range(2))
    assert first.replies == second.replies
    assert any(each.took for each in first.replies)


def test_a_step_goes_to_the_node_that_it_names(tmp_path):
    """Each node names itself as the leader of the topic that it alone has."""
    topics = "topics = { a = { replicas = [2] }, b = { replicas = [3] } }\n"
    steps = "".join(
        f"[[steps]]\nnode = {node}\nproduce = {{ topic = '{topic}' }}\n"
        f"expect = {{ error_code = '{told}' }}\n"
        for node, topic, told in (
            (2, "a", "NONE"),
            (3, "b", "NONE"),
            (1, "a", "NOT_LEADER_OR_FOLLOWER"),
            (3, "a", "NOT_LEADER_OR_FOLLOWER"),
        )
    )
    case = loaded(tmp_path, THREE + topics + steps)
    kafka = ProfileBroker(PROFILE)
    (result,) = Comparison(kafka, kafka, PROFILE).run([case])
    assert result.word == "alike"


def test_what_stays_in_flight_is_awaited_in_the_end(tmp_path):
    """It is answered after the steps behind it, and judged like any other."""
    steps = """
[[steps]]
in_flight = true
fetch = { max_wait = 300 }
[[steps]]
connection = "b"
metadata = {}
"""
    fetched, described = play(loaded(tmp_path, NEW + steps)).replies
    assert fetched.took >= 300 > described.took


NEVER = {
    "elected = [2]": "waited 2 s for a leader among node 2",
    "kill = 3\n[[steps]]\nin_sync = [1, 3]": "waited 2 s for nodes 1, 3 to be the replicas in sync",
    "isolate = 1\n[[steps]]\npause = 2\n[[steps]]\nlead = 3": "lead 3: waited 2.0 s",
}


@pytest.mark.parametrize("acts", NEVER)
def test_what_never_comes_is_told(tmp_path, monkeypatch, acts):
    monkeypatch.setattr(nodes, "WAIT_SECONDS", 2.0)
    with pytest.raises(CompareError, match=NEVER[acts]):
        play(loaded(tmp_path, f"{THREE}[[steps]]\n{acts}\n"))


@pytest.mark.slow
def test_a_cluster_at_an_address_plays_what_needs_no_faults():
    """The one that is asked is node 1, also if it is not the first. Faults are left out."""
    several = [each for each in every_case() if each.nodes > 1]
    with (
        Cluster(3, profile=PROFILE) as cluster,
        LiveBroker(*cluster.addresses[2]) as broker,
    ):
        offered = [each for each in several if not unoffered(each, broker, broker.versions())]
        comparison = Comparison(broker, ProfileBroker(PROFILE), PROFILE, live=True)
        words = {each.case.name: each.word for each in comparison.run(several)}
        left = cluster.describe().topics
    assert broker.nodes == 3
    assert len(offered) >= 5
    assert {each.name for each in offered} == {each for each, w in words.items() if w == "alike"}
    assert set(words.values()) == {"alike", "left out"}
    assert not left
