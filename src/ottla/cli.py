"""The command `ottla`: the one composition root, above all packages.

    ottla up       a cluster in the foreground, for any Kafka client
    ottla demo     the main job: two idempotent producers write while leaders fail; then the proof
    ottla sim      simulated runs and sweeps
    ottla study    many simulated runs as a data pipeline, and the audit of a topic
    ottla compare  any broker beside a profile, case by case

A mistake of the user ends with one line on standard error that says what to do, and status 2.
Nothing heavy is imported before it is needed, so that `ottla up` acknowledges its first record
about 300 ms after the process starts.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from ottla import __version__
from ottla.commands.compare import compare
from ottla.commands.saying import first_of, ready_object, unusable
from ottla.commands.sim.app import app as sim_app
from ottla.commands.sim.telling import Line, say
from ottla.commands.study.app import app as study_app
from ottla.commands.up_options import (
    MAX_PORT,
    Advertised,
    AsJson,
    AutoCreate,
    Chosen,
    DataDir,
    DefaultPartitions,
    ElectionTimeoutMs,
    Flush,
    Host,
    MinInsyncReplicas,
    Nodes,
    Port,
    Profile,
    Topics,
    WithoutNode,
    as_options,
    meant,
    one_or_each,
)
from ottla.commands.usage import (
    UsageError,
    check_loop,
    check_profile,
    check_surroundings,
    check_words,
    drop_output,
    of_the_machine,
    one_line,
    refused,
)
from ottla.demo.command import demo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ottla.broker.cluster.async_cluster import AsyncCluster
    from ottla.broker.topics.topic import Topic

SERVICE_SIGNALS = (signal.SIGINT, signal.SIGTERM)

# Plain help and errors: rich would draw boxes, and costs 100 ms before the first byte is served.
app = typer.Typer(
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
)
app.add_typer(sim_app, name="sim")
app.add_typer(study_app, name="study")


def main() -> NoReturn:
    """Run the command line; the process ends with its status."""
    try:
        check_surroundings()
        check_words(sys.argv[1:])
        status = app(standalone_mode=False)
    except (typer.Abort, KeyboardInterrupt):
        status = 130
    except BrokenPipeError:
        raise  # the reader of the output has ended
    except OSError as error:
        told = of_the_machine(error)
        if error.filename is not None:
            told = f"{error.filename}: {refused(error)}"
        elif told:
            drop_output()  # a full disk; help and version are printed by the option parser
        else:
            raise  # not about a file, so the user cannot name another one
        sys.stderr.write(f"ottla: {one_line(told)}\n")
        status = 2
    except typer.TyperException as error:
        told = getattr(error, "format_message", error.__str__)()
        if told.startswith("Usage: "):  # the help, printed when no command is given
            sys.stdout.write(told + "\n")
        else:
            sys.stderr.write(f"ottla: {one_line(told)}\n")
        status = 2
    sys.exit(status or 0)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ottla {__version__}")
        raise typer.Exit


@app.callback()
def ottla(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """A small, exact, embeddable reference broker for Kafka's idempotent produce."""


# --- ottla up -------------------------------------------------------------------------------------


@app.command()
def up(
    *,
    nodes: Nodes = 3,
    port: Port = 9092,
    host: Host = "127.0.0.1",
    advertised: Advertised = None,
    profile: Profile = "reference",
    data_dir: DataDir = None,
    without_node: WithoutNode = None,
    topic: Topics = None,
    as_json: AsJson = False,
    auto_create: AutoCreate = True,
    flush: Flush = "each-turn",
    min_insync_replicas: MinInsyncReplicas = 1,
    election_timeout_ms: ElectionTimeoutMs = 500,
    default_partitions: DefaultPartitions = 1,
) -> None:
    """Run a cluster in the foreground until SIGINT or SIGTERM.

    The line `ready bootstrap=HOST:PORT` on standard output says that produce requests can succeed.
    A node whose disk fails prints a line on standard error and stops. When the last node has
    stopped, the command ends with status 1.
    """
    for each in SERVICE_SIGNALS:
        signal.signal(each, _leave_early)
    # A start makes almost no garbage; to look for it would take 15 ms.
    gc.disable()
    topics = _topics(topic or (), nodes)
    _check_settings(port, nodes, profile, data_dir)
    chosen = Chosen(flush, min_insync_replicas, election_timeout_ms, default_partitions)
    cluster = _cluster(
        nodes,
        host=host,
        port=port,
        advertised=one_or_each(advertised),
        data_dir=data_dir,
        topics=topics,
        without_nodes=without_node or (),
        profile=profile,
        auto_create_topics=auto_create,
        **meant(chosen, nodes)._asdict(),
    )
    if not _run(cluster, nodes, as_json=as_json):
        sys.stderr.write("ottla: every node has stopped, nothing is served any more\n")
        raise typer.Exit(1)


def _cluster(nodes: int, **settings: Any) -> AsyncCluster:
    # All imports happen here. A later import would make a client wait.
    from ottla.broker.cluster.async_cluster import AsyncCluster
    from ottla.broker.errors import ConfigError

    try:
        return AsyncCluster(nodes, **settings)
    except ConfigError as error:
        raise UsageError(as_options(str(error))) from None


def _run(cluster: AsyncCluster, nodes: int, *, as_json: bool) -> bool:
    """Run `_serve` on an event loop of its own."""
    import asyncio

    from ottla.broker.event_loop.loops import new_event_loop

    check_loop()
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(_serve(cluster, nodes, as_json=as_json))


def _leave_early(*_: object) -> NoReturn:
    """End the process: a signal came before there was anything to stop.

    Not by `sys.exit`: the signal may come during an import that swallows exceptions.
    """
    os._exit(0)


def _topics(texts: Sequence[str], nodes: int) -> list[Topic]:
    from ottla.broker.arguments.spelling import shown

    topics = [_topic(text, nodes) for text in texts]
    names = [each.name for each in topics]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"--topic: {shown(name)} is named twice")
    return topics


def _topic(text: str, nodes: int) -> Topic:
    from ottla.broker.arguments.spelling import shown
    from ottla.broker.errors import ConfigError
    from ottla.broker.topics.names import name_refusal
    from ottla.broker.topics.topic import Topic

    try:
        topic = Topic.parse(text)
    except ConfigError as error:
        raise UsageError(f"--topic: {error}") from None
    refusal = name_refusal(topic.name)
    if refusal:
        raise UsageError(f"--topic {shown(text)}: {refusal}")
    if (topic.replication_factor or 0) > nodes:
        raise UsageError(
            f"--topic {shown(text)} asks for {topic.replication_factor} replicas; there are "
            f"{nodes} nodes: lower it, or raise --nodes"
        )
    return topic


def _check_settings(port: int, nodes: int, profile: str, data_dir: Path | None) -> None:
    check_profile(profile)
    if port and port + nodes - 1 > MAX_PORT:
        raise UsageError(f"--port {port}: node {nodes} would need port {port + nodes - 1}")
    if data_dir is not None and data_dir.exists() and not data_dir.is_dir():
        raise UsageError(f"--data-dir {data_dir}: is a file; name a folder")


async def _serve(cluster: AsyncCluster, nodes: int, *, as_json: bool) -> bool:
    """Start the cluster, print that it is ready, wait for a signal, stop it. A signal during the
    start ends the start.

    Returns whether any node was running at the end.
    """
    import asyncio

    from ottla.broker.event_loop.collecting import collect_seldom

    loop = asyncio.get_running_loop()
    told = asyncio.Event()
    starting = asyncio.create_task(_start(cluster))
    _show_log()

    def leave() -> None:
        told.set()
        starting.cancel()

    left = set(range(1, nodes + 1))

    def failed(node: int) -> None:
        left.discard(node)
        if not left:
            leave()

    cluster.on_failed = failed
    for each in SERVICE_SIGNALS:
        loop.add_signal_handler(each, leave)
    try:
        with Line() as line, suppress(asyncio.CancelledError):
            line.tell(lambda since: f"starting {len(left)} nodes, {since:.0f} s")
            await starting
        line.clear()
        if not told.is_set():
            collect_seldom()
            say(ready_object(cluster) if as_json else f"ready bootstrap={first_of(cluster)}")
            await told.wait()
        return bool(left)
    finally:
        await cluster.stop()


def _show_log() -> None:
    """Send the nodes' log, such as why a node stops, to standard error, one line each."""
    import logging

    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("ottla: %(message)s"))
    logging.getLogger("ottla").addHandler(handler)


async def _start(cluster: AsyncCluster) -> None:
    from ottla.broker.errors import (
        ClusterTimeoutError,
        ConfigError,
        NodeStateError,
        RequestFailedError,
    )
    from ottla.log.errors import StoreError

    try:
        await cluster.start()
    except OSError as error:
        raise UsageError(unusable(error)) from None
    except ConfigError as error:
        raise UsageError(as_options(str(error))) from None
    except (NodeStateError, RequestFailedError, StoreError) as error:
        raise UsageError(str(error)) from None
    except ClusterTimeoutError as error:
        raise UsageError(f"the cluster did not get ready: {str(error).splitlines()[0]}") from None


app.command()(demo)
app.command()(compare)
