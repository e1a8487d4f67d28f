"""An argument of somebody else's class may raise, be endless or say a megabyte of itself.

`topics=np.array(1)` was a `TypeError` that named no argument; `topics=range(10**9)` was made a list
before anybody looked how long it is; a name of a million characters came back whole.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock, Mock

import pytest

from ottla import Cluster, OttlaError, Topic
from ottla.broker.arguments.spelling import called, printable, said, shown
from ottla.broker.config import ClusterConfig, FlushPolicy
from ottla.broker.errors import ConfigError
from ottla.broker.topics.configs import refusal
from ottla.broker.topics.names import name_refusal

made_of: Any = Cluster
topic_of: Any = Topic
"""Types are not looked at: what is handed in is no such thing."""
HUGE = "x" * 10**6
MOST = 2_000
"""Characters of any error's text."""


class Refusing(Sequence[Any]):
    """Like an array of no dimension: it has a length, and cannot be gone through."""

    def __len__(self):
        return 3

    def __getitem__(self, place):
        raise RuntimeError(f"not for\nyou: {HUGE}")

    def __iter__(self):
        raise RuntimeError("not for you")


class Endless(Collection[str]):
    taken = 0

    def __len__(self):
        return 10**9

    def __contains__(self, each):
        return True

    def __iter__(self):
        while True:
            self.taken += 1
            yield "a"


class WithoutValues(Mapping[int, str]):
    def __len__(self):
        return 1

    def __iter__(self):
        return iter([1])

    def __getitem__(self, key):
        raise KeyError(key)


class SilentError(Exception):
    def __str__(self):
        raise RuntimeError


class Nowhere:
    def __fspath__(self):
        raise SilentError


class NoNumber:
    def __index__(self):
        raise SilentError


class NoReal(float):
    def __float__(self):
        raise SilentError


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("topics", Refusing()), ("without_nodes", Refusing()), ("advertised", Refusing())],
        *[("advertised", WithoutValues()), ("data_dir", Nowhere()), ("nodes", NoNumber())],
        *[("port", NoNumber()), ("seed", NoNumber())],
    ],
    ids=lambda each: each if isinstance(each, str) else type(each).__name__,
)
def test_what_an_argument_of_a_cluster_raises_names_it(name, value):
    with pytest.raises(ConfigError, match=name) as refused:
        made_of(**{name: value})
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("assignment", Refusing()), ("assignment", [Refusing()]), ("configs", WithoutValues())],
        *[("partitions", NoNumber()), ("configs", {"min.cleanable.dirty.ratio": NoNumber()})],
    ],
)
def test_so_does_what_one_of_a_topic_raises(name, value):
    with pytest.raises(ConfigError, match=rf"^{name}") as refused:
        topic_of("t", **{name: value})
    assert str(refused.value).isprintable()


def test_a_timeout_that_is_no_number_after_all():
    with (
        made_of(nodes=1, topics=["t"]) as cluster,
        pytest.raises(ConfigError, match=r"^timeout is "),
    ):
        cluster.leader("t", timeout=NoReal())


@pytest.mark.parametrize("name", ["topics", "without_nodes", "assignment"])
def test_no_more_is_taken_than_there_can_be(name):
    endless = Endless()
    made = topic_of if name == "assignment" else made_of
    with pytest.raises(ConfigError, match=rf"^{name} has more than 1048576 members"):
        made(**{name: endless}, **({"name": "t"} if made is topic_of else {}))
    assert endless.taken == 2**20 + 1
    endless = Endless()
    with pytest.raises(ConfigError, match=r"^assignment\[0\] has more than 1000 members"):
        topic_of("t", assignment=[endless])
    assert endless.taken == 1001


@pytest.mark.parametrize("text", [HUGE, "\ud800", "a\nb\x1b[31m", f"\ud800{HUGE}"], ids=ascii)
def test_a_text_is_said_back_short_and_printable(text):
    asked = [
        lambda: made_of(flush=text),
        lambda: made_of(profile=text),
        lambda: made_of(host=text),
        lambda: made_of(data_dir=f"{text}\0"),
        lambda: made_of(**{text: 1}),
        lambda: made_of(topics=[text, text]),
        lambda: made_of(topics=[topic_of(text), topic_of(text)]),
        lambda: Topic.parse(f"{text}:x"),
        lambda: topic_of("t", configs={text: None}),
        lambda: topic_of("t", configs={"retention.ms": [text]}),
    ]
    for each in asked:
        with pytest.raises(OttlaError) as refused:
            each()
        check(str(refused.value))


@pytest.mark.parametrize("text", [HUGE, "\ud800", "a\nb\x1b[31m", f"\ud800{HUGE}"], ids=ascii)
def test_so_it_is_by_a_cluster_that_runs(cluster, text):
    asked = [
        lambda: cluster.create_topic(text),
        lambda: cluster.create_topic("new", configs={text: 1}),
        lambda: cluster.create_topic("new", configs={"retention.ms": text}),
        lambda: cluster.create_topic("new", configs={"cleanup.policy": text}),
        lambda: cluster.delete_topic(text),
        lambda: cluster.leader(text),
        lambda: cluster.transfer_leadership(text, 0, 1),
        lambda: cluster.break_disk(1, text),
        lambda: cluster.kill(text),
    ]
    for each in asked:
        with pytest.raises(OttlaError) as refused:
            each()
        check(str(refused.value))


@pytest.fixture(scope="module")
def cluster():
    with made_of(nodes=1) as cluster:
        yield cluster


def check(told):
    assert len(told) <= MOST
    assert told.isprintable()
    told.encode()


def test_kafkas_own_words_are_whole_where_they_can_be_printed():
    assert name_refusal("ü" * 300).count("ü") == 300
    assert printable(refusal({"é": "1"})) == "Unknown topic config name: é"


def test_a_name_of_a_topic_is_said_whole():
    longest = "x" * 249
    assert called(longest) == longest
    assert len(called(f"{longest}y")) == 251
    assert (shown(HUGE), printable(HUGE, 10)) == (f"'{'x' * 56}...", "xxxxxxx...")
    assert (said(SilentError()), said(ValueError("a\nb"))) == ("SilentError", "ValueError: a\\nb")


def test_a_wait_in_vain_tells_of_what_was_awaited_however_many_topics_there_are():
    """It told of all of them: 8 KB."""
    topics = [topic_of(f"topic-{i}", partitions=4) for i in range(10)]
    with made_of(nodes=3, topics=topics) as cluster:
        to = cluster.leader("topic-7", 3) % 3 + 1
        with pytest.raises(OttlaError, match=rf"waited .* for node {to} to lead") as transfer:
            cluster.transfer_leadership("topic-7", 3, to=to, timeout=0)
        cluster.kill(1)
        cluster.kill(2)
        with pytest.raises(OttlaError, match=r"waited .* for a leader of topic-7-3") as leader:
            ask_on(cluster)
    for each in (transfer, leader):
        _, *lines = str(each.value).splitlines()
        assert len(str(each.value)) < MOST
        told = [line.split()[0] for line in lines]
        assert told == ["cluster", "node", "node", "node", "topic-7-3"]


def ask_on(cluster):
    """Until the leader has resigned, if it is the one that lives."""
    for _ in range(200):
        cluster.leader("topic-7", 3, timeout=0.02)
        time.sleep(0.01)


def test_a_file_is_no_folder(tmp_path):
    """It was a sentence of the system's at the start."""
    path = tmp_path / "file"
    path.write_text("")
    for each in (path, str(path), Path(f"{path}/below/it")):
        with pytest.raises(ConfigError, match=r"^data_dir is .* is a file; name a folder$"):
            made_of(data_dir=each)
    with pytest.raises(ConfigError, match=r"^data_dir is .*File name too long; name another"):
        made_of(data_dir=tmp_path / HUGE)


MOCKS = [
    ({"host": MagicMock(spec=str)}, "host"),
    ({"profile": MagicMock(spec=str)}, "profile"),
    ({"flush": MagicMock(spec=str)}, "flush"),
    ({"flush": MagicMock(spec=FlushPolicy)}, "flush"),
    ({"auto_create_topics": Mock(spec=bool)}, "auto_create_topics"),
    ({"heartbeat_ms": Mock(spec=int)}, "heartbeat_ms"),
    ({"advertised": MagicMock(spec=str)}, "advertised"),
    ({"nodes": 1, "advertised": [MagicMock(spec=str)]}, "advertised"),
    ({"data_dir": MagicMock(spec=str)}, "data_dir"),
    ({"topics": [MagicMock(spec=str)]}, "topics"),
    ({"topics": [Mock(spec=Topic)]}, "topics"),
    ({"topics": Mock(spec=list)}, "topics"),
    ({"config": Mock(spec=ClusterConfig)}, "config"),
]


@pytest.mark.parametrize(("settings", "name"), MOCKS)
def test_a_mock_of_the_right_class_is_not_one_of_it(settings, name):
    """A mock with a spec has that class for `isinstance`, and was an AttributeError further in."""
    with pytest.raises(ConfigError, match=name):
        made_of(**settings)


@pytest.mark.parametrize("name", ["name", "partitions", "configs", "assignment"])
@pytest.mark.parametrize("spec", [str, int, dict, list])
def test_nor_is_it_in_a_topic(name, spec):
    with pytest.raises(ConfigError, match=name):
        topic_of(**({"name": "t"} | {name: Mock(spec=spec)}))


class Mute(str):
    """A text that cannot be said."""

    def __str__(self):
        raise ValueError("not to be said")

    __repr__ = __str__


def test_a_text_is_taken_as_its_letters_whatever_its_class(tmp_path):
    assert made_of(data_dir=Mute(tmp_path / "new"), topics=[Mute("t")], host=Mute("127.0.0.1"))
