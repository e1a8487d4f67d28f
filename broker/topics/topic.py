"""`Topic`: a topic as a user writes it, checked when the object is made.

A config's value may be a number, True or False if its type allows that
(`ottla.broker.topics.configs`), although Kafka has only texts. A value that no cluster could accept
raises here, with the name of the argument. Other refusals come from the cluster's controller.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ottla.broker.arguments.arguments import INT32_MAX, as_whole, is_a, items, pairs, text, whole
from ottla.broker.arguments.spelling import shown
from ottla.broker.errors import ConfigError
from ottla.broker.topics.configs import TOPIC_CONFIGS

MOST_DIGITS = 10
"""Most digits of a number in `NAME:PARTITIONS:RF`, as in an int32."""
MOST_REPLICAS = 1_000
"""Most nodes in one list of an assignment. The controller checks that the nodes exist."""


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic to create: `replication_factor` None means as many replicas as nodes, up to 3.

    `assignment[p]` lists the nodes of partition *p*, its preferred leader first; it replaces the
    two numbers. `configs` are Kafka's topic configs by name; values may be numbers, True or False.
    Raises `ConfigError` if a value has a wrong type. A cluster may still refuse the topic (its
    name, a count, a config): then `create_topic` raises.

    >>> from ottla import Cluster, Topic
    >>> with Cluster(nodes=1, topics=[Topic("orders", partitions=2)]) as cluster:
    ...     cluster.leader("orders", 1)
    1
    >>> Topic("orders", configs={"min.insync.replicas": 2}).configs
    {'min.insync.replicas': '2'}
    """

    name: str
    partitions: int = 1
    replication_factor: int | None = None
    configs: Mapping[str, str | float] = field(default_factory=dict)
    assignment: Sequence[Sequence[int]] | None = None

    def __post_init__(self) -> None:
        checked = {
            "name": text("name", self.name),
            "partitions": whole("partitions", self.partitions, -1, INT32_MAX),
            "replication_factor": self.replication_factor,
            "configs": _configs(self.configs),
            "assignment": self.assignment,
        }
        if self.replication_factor is not None:
            factor = whole("replication_factor", self.replication_factor, -1, INT32_MAX)
            checked["replication_factor"] = factor
        if self.assignment is not None:
            checked["assignment"] = _assignment(self.assignment)
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @classmethod
    def parse(cls, spelled: str) -> Topic:
        """Read `NAME`, `NAME:PARTITIONS` or `NAME:PARTITIONS:RF`. Raises `ConfigError`.

        >>> Topic.parse("orders:3:1").partitions
        3
        """
        name, *numbers = text("topic", spelled).split(":")
        well_formed = all(
            each.isdecimal() and len(each) <= MOST_DIGITS and 0 < int(each) <= INT32_MAX
            for each in numbers
        )
        if not name or len(numbers) > 2 or not well_formed:
            wanted = "is not NAME:PARTITIONS:RF, such as orders:3:3"
            raise ConfigError(f"topic {shown(spelled)} {wanted}")
        counts = [int(each) for each in numbers]
        return cls(name, counts[0] if counts else 1, counts[1] if len(counts) == 2 else None)


def topics_of(value: object) -> tuple[Topic, ...]:
    """The topics in the argument `topics` of a cluster: `Topic`s, or texts for `Topic.parse`.

    Raises `ConfigError`, also if two have the same name.

    >>> [each.name for each in topics_of(["orders", "audit:2", Topic("log")])]
    ['orders', 'audit', 'log']
    """
    topics: dict[str, Topic] = {}
    for place, each in enumerate(items("topics", value, "topics or names")):
        if is_a(each, str):
            topic = _parsed(each, f"topics[{place}]")
        elif is_a(each, Topic):
            topic = each
        else:
            raise ConfigError(f"topics[{place}] is {shown(each)}; a Topic or a name is wanted")
        if topic.name in topics:
            raise ConfigError(f"topics: {shown(topic.name)} is named twice")
        topics[topic.name] = topic
    return tuple(topics.values())


def _parsed(spelled: str, where: str) -> Topic:
    try:
        return Topic.parse(spelled)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None


_TOO_LONG = 10**40
"""Numbers of this size and above are refused, because no config allows them."""


def _configs(value: object) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise ConfigError(f"configs is {shown(value)}; a dict of names and values is wanted")
    names = ((text("a name in configs", name), each) for name, each in pairs("configs", value))
    return {name: _config(name, each) for name, each in names}


def _config(name: str, value: object) -> str:
    """A config's value as text, as on the wire. Whether Kafka accepts it is checked later."""
    where = f"configs[{shown(name)}]"
    if is_a(value, str):
        return text(where, value)
    row = TOPIC_CONFIGS.get(name)
    taken = "a text or a number" if row is None else row.type.written
    if is_a(value, bool):
        if row is None or row.type.takes_truth:
            return str(value).lower()
    elif (number := as_whole(value)) is not None:
        if (row is None or row.type.takes_number) and abs(number) < _TOO_LONG:
            return str(number)  # the range is checked later
    elif is_a(value, float) and row is not None and row.type.takes_fraction:
        return repr(float(value))
    raise ConfigError(f"{where} is {shown(value)}; {taken} is wanted")


def _assignment(value: object) -> tuple[tuple[int, ...], ...]:
    lists = []
    for partition, nodes in enumerate(items("assignment", value, "lists of nodes", ordered=True)):
        where = f"assignment[{partition}]"
        replicas = items(where, nodes, "nodes", MOST_REPLICAS, ordered=True)
        lists.append(tuple(whole(where, each, -INT32_MAX - 1, INT32_MAX) for each in replicas))
    if not lists:
        raise ConfigError("assignment names no partition; name the nodes of each, or leave it out")
    return tuple(lists)
