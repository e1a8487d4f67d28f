"""Cases that are left out, each with the reason: what a broker does not serve, make or do.

Whatever else keeps a case from being played ends the comparison.
"""

import pytest

from compare_kit import kafka, written
from ottla.broker.profiles.named import profile_named
from ottla.commands.compare import AGAINST
from ottla.compare.brokers import ProfileBroker
from ottla.compare.finding import load_cases
from ottla.compare.recordings import RecordedBroker, record_broker
from ottla.compare.running import Comparison

PROFILE = "reference"
NEWEST = profile_named(AGAINST).name


def compared(target, profile, cases):
    comparison = Comparison(target, ProfileBroker(profile), profile)
    return comparison, list(comparison.run(cases))


def test_a_case_that_the_target_does_not_serve_is_left_out_with_the_reason(tmp_path):
    case = written(tmp_path, "[[steps]]\nproduce = { version = 13 }\n")
    comparison, (result,) = compared(ProfileBroker(PROFILE), PROFILE, [case])
    assert result.left_out == "reference serves produce 0 to 12, not 13"
    assert comparison.status == 0
    record_broker(tmp_path, "a small broker", {0: (3, 9)})
    case = written(tmp_path, "requires = { fetch = 4 }\n[[steps]]\nproduce = {}\n")
    _, (result,) = compared(RecordedBroker(tmp_path), PROFILE, [case])
    assert result.left_out == f"{tmp_path.name} (recorded) does not serve fetch"
    # A step without a version was asked all the same, and told as a difference.
    case = written(tmp_path, "[[steps]]\nproduce = {}\n[[steps]]\nmetadata = {}\n")
    _, (result,) = compared(RecordedBroker(tmp_path), PROFILE, [case])
    assert result.left_out == f"{tmp_path.name} (recorded) does not serve metadata"


def test_a_case_whose_topic_a_broker_does_not_make_is_left_out_with_the_reason(tmp_path):
    text = "topics = { t = { configs = { 'cleanup.policy' = 'compact' } } }\n"
    case = written(tmp_path, text + "[[steps]]\nproduce = {}\n")
    _, (result,) = compared(ProfileBroker(PROFILE), PROFILE, [case])
    assert "reference: rule: its topic cannot be made: INVALID_CONFIG" in result.left_out


class Alone(ProfileBroker):
    """One node, to which nobody does anything."""

    nodes = 1
    does_faults = False


@pytest.mark.parametrize(
    ("case", "why"),
    {
        "a-follower-names-the-leader": "reference has 1 node, and the case needs 3",
        "a-clean-restart-keeps*": (
            "reference: nobody there does what the case does to nodes (restart)"
        ),
        "an-idle-producer-may-go-on*": "reference: nobody there sets producer_expiry_ms",
    }.items(),
)
def test_a_case_that_needs_more_than_a_broker_offers_is_left_out_with_the_reason(case, why):
    _, (result,) = compared(Alone(PROFILE), PROFILE, load_cases([case]))
    assert result.left_out == why


def test_a_case_that_most_brokers_cannot_play_need_not_be_recorded():
    _, (result,) = compared(kafka(), NEWEST, load_cases(["an-idle-producer-may-go-on*"]))
    why = "this case needs a cluster of its own, and was not recorded"
    assert result.left_out == f"{kafka().name}: {why}"


@pytest.mark.parametrize(
    ("target", "profile"), [("kafka-4.3", "redpanda-25.3"), ("redpanda-25.3", "kafka-4.3")]
)
def test_a_case_that_says_nothing_of_a_profile_is_left_out_with_the_reason(target, profile):
    cases = load_cases(["a-follower-names-the-leader"])
    comparison, (result,) = compared(ProfileBroker(target), profile, cases)
    assert result.left_out == "redpanda-25.3: it serves Produce up to version 7"
    assert not comparison.compared
