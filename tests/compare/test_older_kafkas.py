"""Older Kafkas as they were recorded, beside their profiles.

`make kafka ARGS='--version 3.9.1'` starts one to record it anew, as docs/how-to says.
"""

import gzip

import pytest

from compare_kit import HEAD, RECORDED, loaded, played, recorded_cases
from ottla.broker.profiles.named import ALIASES, PROFILES
from ottla.compare.brokers import ProfileBroker
from ottla.compare.explained import load_explanations
from ottla.compare.recordings import LARGE, RecordedBroker, record, record_broker
from ottla.compare.running import Comparison
from ottla.compare.telling import closing_lines, result_lines

RECORDINGS = {"kafka-3.9": "kafka-3.9.1", "kafka-2.8": "kafka-2.8.2", "kafka-2.4": "kafka-2.4.1"}
"""By profile: the folder of what its original answered, to those with several nodes as far as they
could be played to it."""


@pytest.mark.parametrize("profile", RECORDINGS)
def test_what_was_recorded_is_what_the_profile_answers(profile):
    """And as the cases say; every difference has its reason in the list, and each reason a
    difference."""
    recorded = RecordedBroker(RECORDED.with_name(RECORDINGS[profile]))
    explanations = load_explanations()
    comparison = Comparison(recorded, ProfileBroker(profile), profile, explanations, live=True)
    told = [line for each in comparison.run(recorded_cases()) for line in _differing(each)]
    assert told == []
    assert comparison.status == 0, closing_lines(comparison)
    assert comparison.counts()["alike"] > 230


def _differing(result):
    return result_lines(result) if result.differences else []


def test_kafka_is_the_newest_of_its_profiles():
    kafkas = [each.name for each in PROFILES if each.name.startswith("kafka-")]
    newest = max(kafkas, key=lambda name: [int(n) for n in name.partition("-")[2].split(".")])
    assert ALIASES["kafka"] == newest


def test_a_large_recording_is_packed_and_read_as_it_was(tmp_path):
    step = "[[steps]]\nproduce = { records = [{ value = 'x', repeat = 60000 }] }\n"
    case = loaded(tmp_path, HEAD + step)
    transcript, folder = played(case), tmp_path / "recorded"
    record_broker(folder, "mine", ProfileBroker("reference").versions())
    (folder / "rule.json").write_text("{}", encoding="utf-8")
    record(folder, transcript)
    packed = folder / "rule.json.gz"
    assert not (folder / "rule.json").exists()
    assert packed.stat().st_size * 20 < LARGE < len(gzip.decompress(packed.read_bytes()))
    again = RecordedBroker(folder)
    assert again.play(case, again.versions()).replies == transcript.replies
