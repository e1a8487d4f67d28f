"""Who decides, and who may import what.

To add a deciding module, add its path to `DECIDING`: a folder ends in a slash and covers all that
is below it. Nothing else has to change; the rules in `tidy.deciding` then hold for it.
"""

DECIDING = (
    "raft/",
    "idempotency/",
    "broker/admission.py",
    "broker/beat_messages.py",
    "broker/beats.py",
    "broker/beats_out.py",
    "broker/carrier.py",
    "broker/catalog.py",
    "broker/commands.py",
    "broker/control_client.py",
    "broker/controller.py",
    "broker/effects.py",
    "broker/isr.py",
    "broker/lookout.py",
    "broker/machine.py",
    "broker/node.py",
    "broker/partition.py",
    "broker/partition_state.py",
    "broker/pipeline.py",
    "broker/placement.py",
    "broker/producer_ids.py",
    "broker/purgatory.py",
    "broker/reads.py",
    "broker/replica.py",
    "broker/replica_factory.py",
    "broker/runner.py",
    "broker/scheduler.py",
    "broker/seat.py",
    "broker/timers.py",
    "broker/topic_configs.py",
    "broker/topic_requests.py",
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
    "log/memory_disk.py",
    "log/memory_store.py",
    "log/offset_index.py",
    "log/record_batch.py",
    "log/records.py",
    "log/recovery.py",
    "log/store.py",
    "log/types.py",
    "sim/choices.py",
    "sim/clients/",
    "sim/clocks.py",
    "sim/disks.py",
    "sim/ending.py",
    "sim/handlers.py",
    "sim/invariants/",
    "sim/kernel.py",
    "sim/life.py",
    "sim/nemesis/",
    "sim/network.py",
    "sim/reference_model.py",
    "sim/serving.py",
    "sim/swarm.py",
    "sim/tcp.py",
    "sim/world.py",
)

# What a deciding module may not import: I/O, clocks, chance, threads. Whatever of that it needs is
# handed in as a value or a callable by one of the two drivers.
BANNED_IN_DECIDING = frozenset(
    {
        "asyncio",
        "concurrent",
        "datetime",
        "grpc",
        "kio",
        "lmdb",
        "multiprocessing",
        "os",
        "pathlib",
        "queue",
        "random",
        "rich",
        "secrets",
        "select",
        "selectors",
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
    }
)

# What a deciding module takes from those all the same, by name and nothing else of them.
EXCUSED = {
    # Held syncs block in the writer thread of a real node; no simulated disk holds any.
    "log/memory_disk.py": frozenset({"threading.Event"}),
    # Here a seed becomes choices; `outside.py` refuses a `Random` without one.
    "sim/choices.py": frozenset({"random.Random"}),
}

# These stand where a real node has asyncio, so some of their functions are `async`; none awaits.
ASYNC_BY_NAME = ("sim/life.py", "sim/serving.py")

# Libraries with one home. A folder ends in a slash. Tests may use any of them.
CONFINED = {
    "duckdb": ("sim/studies/",),
    "grpc": ("broker/transport/grpc.py", "broker/control/service.py"),
    "kio": ("broker/codec.py", "broker/api/"),
    "lmdb": ("log/lmdb_store.py",),
    "pyspark": ("sim/studies/",),
    "pytest": ("src/ottla/pytest_plugin.py",),
    "rich": ("src/ottla/cli.py", "src/ottla/sim_cli/", "src/ottla/study_cli/", "src/ottla/demo/"),
    "typer": ("src/ottla/cli.py", "src/ottla/sim_cli/", "src/ottla/study_cli/", "src/ottla/demo/"),
}


def lies_in(path: str, places: tuple[str, ...]) -> bool:
    """Whether a path is one of the places or below one that ends in a slash."""
    return any(path.startswith(p) if p.endswith("/") else path == p for p in places)
