"""Cases, brokers and recordings for the tests of `ottla.compare`."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from ottla.compare.brokers import ProfileBroker
from ottla.compare.case import Case
from ottla.compare.finding import load_cases
from ottla.compare.loading import load
from ottla.compare.recordings import RecordedBroker
from ottla.compare.requests import Versions
from ottla.compare.transcript import Transcript

RECORDED = Path(__file__).resolve().parents[1] / "compare" / "kafka-4.3.1"
"""What Apache Kafka 4.3.1 answered to every case that needs no settings."""

HEAD = 'schema = 1\ntitle = "A rule"\nsource = ["K-CODES"]\n'
NEW = HEAD.replace("1", "2")
"""The head of a case that may have several nodes."""


@cache
def every_case() -> tuple[Case, ...]:
    """The cases that come with Ottla."""
    return tuple(load_cases(["*"]))


def plain_cases() -> list[Case]:
    """Those of one node, to which nothing happens."""
    return [each for each in every_case() if not each.own_cluster]


def recorded_cases() -> list[Case]:
    """Those that `make kafka` and `make kafka-nodes` can play: nobody sets a broker's settings."""
    return [each for each in every_case() if not each.settings]


@cache
def kafka() -> RecordedBroker:
    """The recording of Kafka."""
    return RecordedBroker(RECORDED)


class PlayedOnce(ProfileBroker):
    """A profile that remembers what it answered. In process it answers the same each time, and the
    cases of one node alone take five seconds of CPU."""

    def __init__(self, profile: str):
        super().__init__(profile)
        self._played: dict[object, tuple[Case, Transcript]] = {}
        """By name of the case and versions."""

    def play(self, case: Case, versions: Versions) -> Transcript:
        """See `Broker`."""
        asked = case.name, tuple(sorted(versions.items()))
        known = self._played.get(asked)
        if known is None or known[0] != case:
            known = self._played[asked] = case, super().play(case, versions)
        return known[1]


@cache
def played_once(profile: str) -> PlayedOnce:
    """This profile, for all tests of a process."""
    return PlayedOnce(profile)


def written(folder: Path, text: str, name: str = "rule.toml") -> Case:
    """The case of a text, whose head is added."""
    return loaded(folder, HEAD + text, name)


def loaded(folder: Path, text: str, name: str = "rule.toml") -> Case:
    """The case of a whole text."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return load(path)


def played(case: Case, profile: str = "reference") -> Transcript:
    """A case, played to a profile in this process."""
    broker = ProfileBroker(profile)
    return broker.play(case, broker.versions())
