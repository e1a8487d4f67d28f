"""`Topic`: a topic as a user asks for it, checked when it is made.

Numbers are taken as numbers, also where Kafka wants text: a config's value may be a whole number,
True or False if its type is one (`ottla.broker.topics.configs`). What no cluster could make sense
of is refused here, in words that name the argument; what one may still refuse, its controller
answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ottla.broker.arguments.arguments import INT32_MAX, as_whole, is_a, items, pairs, text, whole
from ottla.broker.arguments.spelling import shown
from ottla.broker.errors import ConfigError
from ottla.broker.topics.configs import TOPIC_CONFIGS

MOST_DIGITS = 10
"""Of a count in `NAME:PARTITIONS:RF`: an int32 has no more."""
MOST_REPLICAS = 1_000
"""Of a partition: more than there are nodes, of which the controller speaks."""


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic to create: `replication_factor` None means as many replicas as nodes, up to 3.

    `assignment[p]` names the nodes of partition *p*, its preferred leader first; it takes the place
    of the two numbers. `configs` are Kafka's topic configs by name; numbers, True and False may be
    written as such. Raises `ConfigError` for a value that is none of what its argument takes; what
    a cluster may still refuse (a name, a count, a config) it answers `create_topic` with.

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
    """The argument `topics` of a cluster: topics, or their names (as `Topic.parse` reads them).

    Raises `ConfigError` also where two have the same name.

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
            raise ConfigError(f"topics: {shown(topic.name)} is asked for twice")
        topics[topic.name] = topic
    return tuple(topics.values())


def _parsed(spelled: str, where: str) -> Topic:
    try:
        return Topic.parse(spelled)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None


_TOO_LONG = 10**40
"""Numbers of so many digits are no value of a config, and nothing to be printed."""


def _configs(value: object) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise ConfigError(f"configs is {shown(value)}; a dict of names and values is wanted")
    names = ((text("a name in configs", name), each) for name, each in pairs("configs", value))
    return {name: _config(name, each) for name, each in names}


def _config(name: str, value: object) -> str:
    """A config's value as text, as it goes over the wire; whether Kafka takes it is asked later."""
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
            return str(number)  # whoever knows the config says its range
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
