"""Who decides, and who may import what.

To add a deciding module, add its path to `DECIDING`: a folder ends in a slash and covers all that
is below it. Nothing else has to change; the rules in `tidy.deciding` then hold for it. What a
simulated run imports has to be there, or in `APART` with the reason (`tidy.reached`).
"""

DECIDING = (
    "raft/",
    "idempotency/",
    "broker/partition/admission.py",
    "broker/event_loop/alarm.py",
    "broker/arguments/arguments.py",
    "broker/turn/barriers.py",
    "broker/heartbeats/messages.py",
    "broker/heartbeats/heartbeats.py",
    "broker/heartbeats/incoming.py",
    "broker/heartbeats/outgoing.py",
    "broker/driver/sender.py",
    "broker/controller/catalog.py",
    "broker/node/readiness.py",
    "broker/event_loop/collecting.py",
    "broker/turn/commands.py",
    "broker/turn/tickets.py",
    "broker/config.py",
    "sim/world/batch.py",
    "sim/world/outcomes.py",
    "broker/images.py",
    "broker/driver/look_driver.py",
    "broker/topics/names.py",
    "broker/controller/client.py",
    "broker/controller/controller.py",
    "broker/controller/commands.py",
    "broker/counters.py",
    "broker/node/directory.py",
    "broker/turn/effects.py",
    "broker/driver/endings.py",
    "broker/errors.py",
    "broker/arguments/fields.py",
    "broker/node/handover.py",
    "broker/wire/answers.py",
    "broker/wire/api/",
    "broker/wire/copying.py",
    "broker/wire/host.py",
    "broker/wire/requests.py",
    "broker/node/hosting.py",
    "broker/partition/inspector.py",
    "broker/partition/in_sync.py",
    "broker/driver/fast_append.py",
    "broker/turn/looks.py",
    "broker/driver/deadlines.py",
    "broker/turn/leadership.py",
    "broker/turn/machine.py",
    "broker/controller/name_order.py",
    "broker/node/inspection.py",
    "broker/node/node.py",
    "broker/controller/outcomes.py",
    "broker/partition/partition.py",
    "broker/partition/commands.py",
    "broker/partition/snapshots.py",
    "broker/partition/state.py",
    "broker/wire/pipeline.py",
    "broker/controller/placement.py",
    "broker/driver/reading.py",
    "broker/node/producer_ids.py",
    "broker/partition/purgatory.py",
    "broker/partition/reads.py",
    "broker/wire/remarks.py",
    "broker/turn/watcher.py",
    "broker/turn/replica.py",
    "broker/node/replica_factory.py",
    "broker/driver/runner.py",
    "broker/event_loop/scheduler.py",
    "broker/wire/searches.py",
    "broker/driver/hosted.py",
    "broker/driver/notices.py",
    "broker/event_loop/slices.py",
    "broker/arguments/spelling.py",
    "broker/driver/group_commit.py",
    "broker/event_loop/timers.py",
    "broker/topics/topic.py",
    "broker/topics/config_types.py",
    "broker/topics/configs.py",
    "broker/controller/requests.py",
    "log/build.py",
    "log/checksum.py",
    "log/codec.py",
    "log/disk_groups.py",
    "log/disk_store.py",
    "log/errors.py",
    "log/group_tail.py",
    "log/inflate.py",
    "log/inspection.py",
    "log/keys.py",
    "log/lz4_frame.py",
    "log/memory_disk.py",
    "log/memory_store.py",
    "log/offset_index.py",
    "log/record_batch.py",
    "log/record_layout.py",
    "log/record_walk.py",
    "log/records.py",
    "log/recovery.py",
    "log/store.py",
    "log/types.py",
    "sim/ending/breaking.py",
    "sim/chance/choices.py",
    "sim/clients/",
    "sim/world/clocks.py",
    "sim/world/decoder.py",
    "sim/chance/delays.py",
    "sim/world/disks.py",
    "sim/ending/ending.py",
    "sim/world/client_host.py",
    "sim/world/frames.py",
    "sim/world/listener.py",
    "sim/world/value_call.py",
    "sim/history/history.py",
    "sim/invariants/",
    "sim/world/in_sync_model.py",
    "sim/world/kernel.py",
    "sim/world/life.py",
    "sim/settings/link_times.py",
    "sim/world/log_view.py",
    "sim/world/log_watch.py",
    "sim/world/metadata_watch.py",
    "sim/ending/lost_clients.py",
    "sim/mutants/catalogue.py",
    "sim/mutants/checks.py",
    "sim/clients/mutants.py",
    "sim/mutants/mutant.py",
    "sim/mutants/partition.py",
    "sim/mutants/raft.py",
    "sim/mutants/table.py",
    "sim/nemesis/",
    "sim/world/network.py",
    "sim/world/observer.py",
    "sim/world/order_of_checks.py",
    "sim/world/points.py",
    "sim/ending/probes.py",
    "sim/world/reference_model.py",
    "sim/run.py",
    "sim/settings/ranges.py",
    "sim/settings/settings.py",
    "sim/settings/spelling.py",
    "sim/settings/swarm.py",
    "sim/world/tcp.py",
    "sim/settings/told.py",
    "sim/world/witness.py",
    "sim/world/world.py",
)

# What a simulated run imports and what decides nothing there, and why. Each is still imported, or
# this says too much.
APART = {
    "broker/event_loop/clockwork.py": "the clock of asyncio; the simulator hands in its own",
    "broker/node/folders.py": "why a real folder is refused",
    "broker/event_loop/native.py": "the machine's clock, for that of asyncio",
    "broker/node/disks.py": "where logs lie: one disk is the simulator's",
    "log/forking.py": "what children of this process do not get",
    "log/folder.py": "files of real disks",
    "log/lmdb_store.py": "a real disk",
    "log/note.py": "a file of a real disk",
    "log/pages.py": "pages of a file of a real disk",
    "sim/chance/outside.py": "the net itself",
}

# What a deciding module may not import: I/O, clocks, chance, threads. Whatever of that it needs is
# handed in as a value or a callable by one of the two drivers.
BANNED_IN_DECIDING = frozenset(
    {
        "asyncio",
        "concurrent",
        "ctypes",
        "datetime",
        "gc",
        "getpass",
        "glob",
        "grpc",
        "importlib",
        "io",
        "kio",
        "lmdb",
        "locale",
        "multiprocessing",
        "numpy",
        "os",
        "pathlib",
        "platform",
        "queue",
        "random",
        "rich",
        "secrets",
        "select",
        "selectors",
        "shutil",
        "signal",
        "socket",
        "ssl",
        "subprocess",
        "tempfile",
        "threading",
        "time",
        "typer",
        "uuid",
        "uvloop",
        "weakref",
    }
)

# What a deciding module takes from those all the same, by name and nothing else of them.
EXCUSED = {
    # A partition and its leadership do not keep each other alive; who asks one holds the other.
    "broker/partition/state.py": frozenset({"weakref.WeakMethod"}),
    # A buffer of bytes.
    "broker/wire/copying.py": frozenset({"io.BytesIO"}),
    # While many replicas are made, and a run goes on, nothing is collected.
    "broker/event_loop/collecting.py": frozenset({"gc"}),
    "sim/run.py": frozenset({"gc"}),
    # Libraries of the log's, imported without their fronts, or when first needed.
    "log/checksum.py": frozenset(
        {
            "importlib.machinery.PathFinder",
            "importlib.util.find_spec",
            "importlib.util.module_from_spec",
        }
    ),
    "log/inflate.py": frozenset({"importlib.import_module"}),
    # SQL that lies beside the sources.
    "sim/invariants/statements.py": frozenset({"importlib.resources.files"}),
    # Asked whether one is in a set, and never in which order: `outside.py` refuses that.
    "sim/mutants/mutant.py": frozenset({"object.__hash__"}),
    # Held syncs block in the writer thread of a real node; no simulated disk holds any.
    "log/memory_disk.py": frozenset({"threading.Event"}),
    # Here a seed becomes choices; `outside.py` refuses a `Random` without one.
    "sim/chance/choices.py": frozenset({"random.Random"}),
}

# These stand where a real node has asyncio, or say what stands there, so some of their functions
# are `async`; none awaits.
ASYNC_BY_NAME = ("broker/wire/host.py", "sim/world/life.py", "sim/world/listener.py")

# Functions in which a real node waits, and which no simulated run calls.
WAITS_ELSEWHERE = {"broker/driver/group_commit.py": "drained"}

# Libraries with one home. A folder ends in a slash. Tests may use any of them.
CONFINED = {
    "duckdb": ("sim/studies/",),
    "grpc": ("broker/transport/grpc.py", "broker/control/service.py"),
    "kio": ("broker/wire/codec.py",),
    "lmdb": ("log/lmdb_store.py",),
    "pyspark": ("sim/studies/",),
    "pytest": ("src/ottla/pytest_plugin.py",),
    "rich": (
        "src/ottla/cli.py",
        "src/ottla/commands/sim/",
        "src/ottla/commands/study/",
        "src/ottla/demo/",
    ),
    "typer": (
        "src/ottla/cli.py",
        "src/ottla/demo/",
        "src/ottla/commands/sim/",
        "src/ottla/commands/study/",
        "src/ottla/commands/up_options.py",
        "src/ottla/commands/usage.py",
    ),
}


def lies_in(path: str, places: tuple[str, ...]) -> bool:
    """Whether a path is one of the places or below one that ends in a slash."""
    return any(path.startswith(p) if p.endswith("/") else path == p for p in places)
