"""Pages of the documentation that are written from the code, as text.

Settings come from the source of `broker/config.py`, because a program cannot read the docstring
after a field at run time. Roles and progress come from their tables.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from enum import Enum
from pathlib import Path

from ottla.broker.config import LEAST, MOST, MOST_OF, ClusterConfig, FlushPolicy
from ottla.broker.topics.configs import TOPIC_CONFIGS
from ottla.raft.progress import PROGRESS
from ottla.raft.roles import TRANSITIONS
from ottla.sim.settings.ranges import MAX_SPAN, RANGES, WORDS
from ottla.sim.settings.settings import SETTINGS, RunConfig
from ottla.sim.settings.situations import SITUATIONS
from ottla.sim.settings.swarm import TABLE
from pages_raft import progress_diagram, role_diagram

ROOT = Path(__file__).resolve().parents[2]
CONFIG = ROOT / "broker" / "config.py"
SIMULATED = ROOT / "sim" / "settings" / "settings.py"

_SETTINGS_HEAD = """\
# Settings of a cluster

Written from `broker/config.py` by `tests/tidy/test_generated_pages.py`; do not edit. Every field is
a keyword of `ottla.Cluster`: `Cluster(nodes=3, election_timeout_ms=100, heartbeat_ms=20)`. Names in
`_ms` are milliseconds, in `_bytes` bytes. A value out of the limits of its setting raises
`ConfigError`.
`ottla up` has options for some: `--profile`, `--flush`, `--min-insync-replicas`,
`--election-timeout-ms`, `--default-partitions`, `--auto-create`. Where a cluster listens (`host`,
`port`), where clients find it (`advertised`) and where its logs are (`data_dir`) are not settings,
but arguments [in tests](../how-to/embed-in-tests.md), and options of `ottla up`.

| setting | default | meaning |
|---|---|---|
"""
_SIMULATED_HEAD = """\
# Settings of a simulated run

Written from `sim/settings/settings.py`, `sim/settings/ranges.py` and `sim/settings/swarm.py` by
`tests/tidy/test_generated_pages.py`; do not edit. A setting is given by `--set NAME=VALUE` or in
the TOML file of `--config`; then it is fixed. A seed draws the others from the values in the fourth
column, if there are any (a value that is there twice is drawn twice as often). What is drawn is
made to fit what was given and the other draws. A run with `--whole` draws nothing; a study draws
what its file says.

Names in `_us` are microseconds, in `_ms` milliseconds, in `_bytes` bytes, in `_ppm` parts per
million. Settings that cannot work are refused in one line.

| setting | plain | possible | drawn from | meaning |
|---|---|---|---|---|
"""
_SITUATIONS_HEAD = """
## Situations

Settings that are drawn one by one seldom meet. So half of the seeds take a situation: settings that
go together. A situation is left out where one of its settings was told
(`sim/settings/situations.py`).

| situation | its settings |
|---|---|
"""
_OF_THE_CLUSTER = {"min_insync": "min_insync_replicas"}
"""Settings that a cluster has under another name; the others that say nothing have its words."""
_LIMITS = re.compile(r" From [\d_]+ to [\d_]+\.$")
"""How it ends in the words of a cluster's setting; a simulated one has limits of its own."""
_FLUSH_HEAD = """
## Flush policies

| `FlushPolicy` | when the log is synced |
|---|---|
"""
_CONFIGS_HEAD = """\
# Topic configs

Written from `broker/topics/configs.py` by `tests/tidy/test_generated_pages.py`; do not edit. These
are the 33 topic configs of Apache Kafka 4.3.1, with its types, validators and defaults (measured).
A value that Kafka refuses is refused with INVALID_CONFIG in Kafka's words.

* *served*: the value changes what Ottla does, as it does in Kafka.
* *no effect here*: every value that Kafka accepts is accepted, kept and shown, but has no effect.
* *only as it is*: values that describe what happens here anyway are accepted. Others would change
  what happens in Kafka, and are refused by name.

`Cluster.describe().configs` has the configs of a topic, as *served* or as *no effect here* (a value
that only describes what happens anyway has no effect). The answer to CreateTopics has all 33. In
Python, numbers and bools may be written as such:
`create_topic("orders", configs={"min.insync.replicas": 2, "preallocate": True})`.

| config | type | default | effect | what it does, or why it has no effect |
|---|---|---|---|---|
"""
_ROLES_HEAD = """\
# Raft: roles of a member, progress of a follower

Written from the tables in `raft/roles.py` and `raft/progress.py` by
`tests/tidy/test_generated_pages.py`; do not edit. A role changes through one of these rows or not
at all.

## Roles

```mermaid
"""
_ROLES_ROWS = """```

| in role | when | becomes | term | why | source |
|---|---|---|---|---|---|
"""
_PROGRESS_HEAD = """
## Progress: how a leader sends to one follower

```mermaid
"""
_PROGRESS_ROWS = """```

| in state | when | becomes | why |
|---|---|---|---|
"""


def settings_page() -> str:
    """`docs/reference/settings.md`."""
    said = said_of("ClusterConfig")
    defaults = ClusterConfig()
    rows = [f"| `{name}` | {_value(getattr(defaults, name))} | {said[name]} |" for name in said]
    policies = said_of("FlushPolicy")
    flush = [f"| `{name}` (`{FlushPolicy[name].value}`) | {policies[name]} |" for name in policies]
    return _SETTINGS_HEAD + _lines(rows) + _FLUSH_HEAD + _lines(flush)


def configs_page() -> str:
    """`docs/reference/topic-configs.md`."""
    settings = ClusterConfig()
    rows = [
        f"| {row.name} | {row.type.word} | {_written(row.default_in(settings))} "
        f"| {row.effect.value} | {row.meaning} |"
        for row in TOPIC_CONFIGS.values()
    ]
    return _CONFIGS_HEAD + _lines(rows)


def simulated_page() -> str:
    """`docs/reference/simulated-settings.md`."""
    said, plain = meanings(), RunConfig()
    rows = [
        f"| `{name}` | {_written(getattr(plain, name))} | {_possible(name)} | {_drawn(name)} "
        f"| {said[name]} |"
        for name in SETTINGS
    ]
    situations = _lines([_situation(each) for each in SITUATIONS])
    return _SIMULATED_HEAD + _lines(rows) + _SITUATIONS_HEAD + situations


def _situation(name: str) -> str:
    told = (f"`{each}`: {_any_of(values)}" for each, values in SITUATIONS[name].items())
    return f"| {name} | {', '.join(told)} |"


def _any_of(values: Sequence[int | str | bool]) -> str:
    return " or ".join(_written(each) for each in values)


def meanings() -> dict[str, str]:
    """What each setting of a simulated run is; where its own place says nothing, what the setting
    of a cluster is that it becomes."""
    own, cluster = said_of("RunConfig", SIMULATED), said_of("ClusterConfig")
    return {
        name: own[name] or _LIMITS.sub("", cluster.get(_OF_THE_CLUSTER.get(name, name), ""))
        for name in SETTINGS
    }


def limits(name: str) -> str:
    """The end of the text about a cluster's setting, if it is a number."""
    return f" From {LEAST.get(name, 1):_} to {MOST_OF.get(name, MOST):_}."


def _possible(name: str) -> str:
    if name in WORDS:
        return ", ".join(map(_written, WORDS[name]))
    if name not in RANGES:
        return ""
    low, high = RANGES[name]
    return f"{low:_} to {high:_}" if high < MAX_SPAN else f"from {low:_} on"


def _drawn(name: str) -> str:
    return ", ".join(map(_written, TABLE.get(name, ())))


def _written(value: object) -> str:
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"{value:_}" if isinstance(value, int) else f"`{value}`" if value else "none"


def roles_page() -> str:
    """`docs/reference/raft-roles.md`."""
    roles = [
        f"| {row.source.value} | {row.trigger.value} | {row.target.value} | {row.term.value} "
        f"| {row.reason} | {row.origin} |"
        for row in TRANSITIONS
    ]
    progress = [
        f"| {row.source.value} | {row.event.value} | {row.target.value} | {row.reason} |"
        for row in PROGRESS
    ]
    return "".join(
        (
            _ROLES_HEAD,
            role_diagram(),
            _ROLES_ROWS,
            _lines(roles),
            _PROGRESS_HEAD,
            progress_diagram(),
            _PROGRESS_ROWS,
            _lines(progress),
        )
    )


def said_of(name: str, where: Path = CONFIG) -> dict[str, str]:
    """The words after each field of a class; empty where there are none."""
    tree = ast.parse(where.read_text(encoding="utf-8"))
    (found,) = (n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == name)
    return dict(_fields(found.body))


def _fields(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    for statement, after in zip(body, [*body[1:], ast.Pass()], strict=True):
        if isinstance(statement, ast.AnnAssign | ast.Assign):
            target = statement.target if isinstance(statement, ast.AnnAssign) else None
            named = target or statement.targets[0]  # type: ignore[union-attr]
            assert isinstance(named, ast.Name)
            yield named.id, _words(after)


def _words(statement: ast.stmt) -> str:
    """A string on its own, on one line."""
    value = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        return " ".join(value.value.split())
    return ""


def _value(default: object) -> str:
    if isinstance(default, Enum):
        return f"`{type(default).__name__}.{default.name}`"
    if isinstance(default, int) and not isinstance(default, bool):
        return f"{default:_}"
    return f"`{default!r}`"


def _lines(rows: list[str]) -> str:
    return "\n".join(rows) + "\n"
