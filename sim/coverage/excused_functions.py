"""Functions of the broker that no simulated run enters, and why.

An excuse names a folder (`broker/cluster/`), a file (`log/note.py`), or in a file a class or a
function with its classes (`raft/core.py RaftCore.progress`). It covers all that lies in it, but one
that ends in `()` only that function, not those that it makes. A test keeps the table honest: every
place is there, and no run enters what it excuses (`tests/sim/coverage/test_excused.py`).
"""

from __future__ import annotations

from ottla.sim.coverage.functions import Function

_API = "the API for programs, around nodes of asyncio: `tests/broker/cluster`"
_WIRE = "bytes of the protocol; simulated requests are values: `tests/broker/wire`, `tests/fuzz`"
_DISK = "files of real disks; simulated ones share `log/recovery.py` with them: `tests/log`"
_LOOP = "the loop, threads and clocks of a real process: `tests/broker/event_loop`"
_PEOPLE = "words and views for people, pages and tests"
_IMPORT = "runs when its module is imported"
_CODEC = "compressed batches of applications: `tests/log/test_codec.py`"
_SHAPES = "records with headers, or in several parts: `tests/log`"
_ARGUMENTS = "what people and programs hand in: `tests/broker/arguments`"
_PAUSE = "a node paused by its program; the simulator freezes processes"
_DECIDES_NOTHING = "requests that touch no record: `tests/broker/wire/api`"
_MANY = "more replicas on one node, or longer queues, than runs have"
_ODD = "requests that are refused as a whole: `tests/broker/wire/api`"
_CONFIGS = "topic configs that a user sets: `tests/broker/topics`"
_STAMPED = "topics with the time of appending, which runs do not make"
_BY_HAND = "topics whose replicas are placed by hand: `tests/broker/controller`"
_OFF = "flush policy *off*, which no sweep draws"
_CLUSTER = "what a cluster of asyncio asks of its memory store: `tests/broker/cluster`"

FUNCTIONS_EXCUSED: dict[str, str] = {
    "raft/core.py RaftCore.vote": _PEOPLE,
    "raft/core.py RaftCore.first_index": _PEOPLE,
    "raft/core.py RaftCore.progress": _PEOPLE,
    "raft/describe.py": _PEOPLE,
    "raft/progress.py Progress.view": _PEOPLE,
    "raft/raft_log.py RaftLog._learn_voters": "membership changes, which are not built",
    "idempotency/mutex.py ProducerMutex.held": _PEOPLE,
    "idempotency/mutex.py ProducerMutex.waiting": _PEOPLE,
    "idempotency/producer.py Producer.cut": _OFF,
    "idempotency/producer.py InFlight.describe": _PEOPLE,
    "idempotency/rules.py Row.matches": _PEOPLE,
    "idempotency/rules.py Impossible.matches": _PEOPLE,
    **dict.fromkeys(
        (
            f"idempotency/sessions.py {name}"
            for name in (
                "SessionTable",
                "session_of",
                "pair_of",
                "_inside",
                "_begun",
                "_stored",
                "_tail",
            )
        ),
        "profiles of Redpanda, which plain sweeps do not use",
    ),
    "idempotency/snapshot.py encode": _PEOPLE,
    "idempotency/snapshot.py decode": _PEOPLE,
    "idempotency/snapshot.py Encoding.data": _PEOPLE,
    "idempotency/table.py ProducerTable.rewind": _OFF,
    "idempotency/table.py ProducerTable.snapshot": _PEOPLE,
    "idempotency/table.py ProducerTable.describe": _PEOPLE,
    "idempotency/table.py ProducerTable._describe": _PEOPLE,
    "idempotency/table.py ProducerTable.named": _PEOPLE,
    "log/build.py _gzip": _CODEC,
    "log/build.py _snappy_xerial": _CODEC,
    "log/build.py _lz4_independent": _CODEC,
    "log/build.py _zstd": _CODEC,
    "log/checksum.py": _IMPORT,
    "log/codec.py": _DISK,
    "log/disk_groups.py": _DISK,
    "log/disk_store.py": _DISK,
    "log/folder.py": _DISK,
    "log/forking.py": _LOOP,
    "log/group_tail.py": _DISK,
    "log/inflate.py load": _CODEC,
    "log/inflate.py _gzip": _CODEC,
    "log/inflate.py _snappy": _CODEC,
    "log/inflate.py _snappy_block": _CODEC,
    "log/inflate.py _lz4": _CODEC,
    "log/inflate.py _lz4_block": _CODEC,
    "log/inflate.py _zstd": _CODEC,
    "log/inspection.py appended_at": _STAMPED,
    "log/inspection.py inspect": _PEOPLE,
    "log/keys.py": _DISK,
    "log/lmdb_store.py": _DISK,
    "log/lz4_frame.py": _CODEC,
    "log/memory_disk.py MetaPut": _CLUSTER,
    "log/memory_disk.py MemoryDisk.hold_syncs": _CLUSTER,
    "log/memory_disk.py MemoryDisk.release_syncs": _CLUSTER,
    "log/memory_store.py MemoryStore.get_meta": _CLUSTER,
    "log/memory_store.py MemoryStore.put_meta": _CLUSTER,
    "log/memory_store.py MemoryStore.close": _CLUSTER,
    "log/note.py": _DISK,
    "log/offset_index.py OffsetIndex.first_offset": _PEOPLE,
    "log/offset_index.py OffsetIndex.base_offset": _PEOPLE,
    "log/pages.py": _DISK,
    "log/record_batch.py read_beginning": _WIRE,
    "log/record_batch.py first_codec": _WIRE,
    "log/record_batch.py resealed": _WIRE,
    "log/record_batch.py crc_matches": _DISK,
    "log/record_layout.py plain_headers": _SHAPES,
    "log/record_layout.py _behind_headers": _SHAPES,
    "log/record_walk.py Window._in_parts": _SHAPES,
    "log/record_walk.py Window._header": _SHAPES,
    "log/record_walk.py Window._number": _SHAPES,
    "log/record_walk.py Window._skip": _SHAPES,
    "log/record_walk.py Window.to_the_end": _SHAPES,
    "log/records.py iter_records": _PEOPLE,
    "log/recovery.py Kept": _DISK,
    "log/recovery.py _entry_is()": _IMPORT,
    "log/types.py RecordBatch.parts": _WIRE,
    "log/types.py RecordBatch.beginning": _WIRE,
    "log/types.py RecordBatch.stamped": _STAMPED,
    "broker/arguments/addresses.py": _ARGUMENTS,
    "broker/arguments/arguments.py _whole_number": _ARGUMENTS,
    "broker/arguments/arguments.py items": _ARGUMENTS,
    "broker/arguments/arguments.py seconds": _ARGUMENTS,
    **dict.fromkeys(
        (
            f"broker/arguments/fields.py {name}()"
            for name in ("whole", "text", "some_bytes", "optional", "listing", "record", "mapping")
        ),
        _IMPORT,
    ),
    "broker/arguments/places.py": _ARGUMENTS,
    "broker/arguments/spelling.py called": _ARGUMENTS,
    "broker/arguments/spelling.py listed": _ARGUMENTS,
    "broker/arguments/spelling.py no_such": _ARGUMENTS,
    "broker/arguments/spelling.py said": _ARGUMENTS,
    "broker/arguments/spelling.py shown": _ARGUMENTS,
    "broker/client.py": _API,
    "broker/cluster/": _API,
    "broker/config.py ClusterConfig.slow_elections": _ARGUMENTS,
    "broker/config.py with_settings": _ARGUMENTS,
    "broker/controller/commands.py _null_or()": _IMPORT,
    "broker/controller/controller.py Controller.catalog": _PEOPLE,
    "broker/controller/controller.py _nobody": "a default that nodes replace",
    "broker/controller/placement.py PlacementCounts.holds": _PEOPLE,
    "broker/controller/placement.py PlacementCounts.leads": _PEOPLE,
    "broker/controller/requests.py _assigned": _BY_HAND,
    "broker/controller/requests.py _assignment_refusal": _BY_HAND,
    "broker/counters.py": _PEOPLE,
    "broker/driver/group_commit.py Syncer.drained": _LOOP,
    "broker/driver/group_commit.py Syncer.finish": _LOOP,
    "broker/driver/reading.py Reading.hold": _PAUSE,
    "broker/driver/reading.py Reading.release": _PAUSE,
    "broker/driver/runner.py Runner._put_off": _MANY,
    "broker/driver/runner.py Runner.pause": _PAUSE,
    "broker/driver/runner.py Runner.resume": _PAUSE,
    "broker/driver/runner.py Runner.syncs": _PEOPLE,
    "broker/driver/runner.py Runner.turns": _PEOPLE,
    "broker/errors.py RequestFailedError": _API,
    "broker/errors.py UnusableAddressError": _ARGUMENTS,
    "broker/event_loop/clockwork.py": _LOOP,
    "broker/event_loop/collecting.py collect_seldom": _LOOP,
    "broker/event_loop/collecting.py may_age": _LOOP,
    "broker/event_loop/lifecycle.py": _LOOP,
    "broker/event_loop/loop_thread.py": _LOOP,
    "broker/event_loop/loops.py": _LOOP,
    "broker/event_loop/native.py": _LOOP,
    "broker/event_loop/scheduler.py Scheduler._break": "a replica with a bug, which ends a run",
    "broker/event_loop/scheduler.py Scheduler.mark_later": _MANY,
    "broker/event_loop/slices.py Slices.hold": _PAUSE,
    "broker/event_loop/slices.py Slices.release": _PAUSE,
    "broker/event_loop/slices.py Slices.take": _WIRE,
    "broker/event_loop/timers.py TimerQueue.__len__": _PEOPLE,
    "broker/event_loop/timers.py TimerQueue.get": _PEOPLE,
    "broker/node/disks.py Disks": _DISK,
    "broker/node/disks.py _sync": _DISK,
    "broker/node/folders.py": _DISK,
    "broker/node/handover.py Handover": _API,
    "broker/node/inspection.py DecisionsView": _PEOPLE,
    "broker/node/inspection.py NodeView.decisions_applied": _API,
    "broker/node/inspection.py NodeView.hears": _API,
    "broker/node/inspection.py NodeView.paused": _API,
    "broker/node/inspection.py PartitionView.describe_producers": _PEOPLE,
    "broker/node/inspection.py PartitionView.producers": _API,
    "broker/node/inspection.py PartitionView.producers_digest": _PEOPLE,
    "broker/node/inspection.py ReplicaView.decisions": _PEOPLE,
    "broker/node/inspection.py ReplicaView.last_index": _PEOPLE,
    "broker/node/inspection.py ReplicaView.leader": _API,
    "broker/node/node.py Node.joined": _API,
    "broker/node/node.py Node.pause": _PAUSE,
    "broker/node/node.py Node.registered": _DECIDES_NOTHING,
    "broker/node/node.py Node.resume": _PAUSE,
    "broker/node/node_factory.py": _API,
    "broker/partition/admission.py Admission._set_time": _STAMPED,
    "broker/topics/config_types.py _at_most()": _IMPORT,
    "broker/topics/config_types.py _boolean()": _IMPORT,
    "broker/topics/config_types.py _double()": _IMPORT,
    "broker/topics/config_types.py _range()": _IMPORT,
    "broker/topics/config_types.py int_type()": _IMPORT,
    "broker/topics/config_types.py list_type()": _IMPORT,
    "broker/topics/config_types.py long_type()": _IMPORT,
    "broker/topics/config_types.py string_type()": _IMPORT,
    "broker/topics/config_types.py UnreadableError": _CONFIGS,
    "broker/topics/config_types.py _replicas": _CONFIGS,
    "broker/topics/config_types.py _split": _CONFIGS,
    "broker/topics/config_types.py invalid": _CONFIGS,
    "broker/topics/config_types.py java_double": _CONFIGS,
    "broker/topics/config_types.py list_type.read": _CONFIGS,
    "broker/topics/config_types.py parse_double": _CONFIGS,
    "broker/topics/configs.py _is": _CONFIGS,
    "broker/topics/configs.py _kept_long_enough": _CONFIGS,
    "broker/topics/configs.py _only": _CONFIGS,
    "broker/topics/configs.py has_effect": _CONFIGS,
    "broker/topics/topic.py _assignment": _BY_HAND,
    "broker/topics/topic.py _config": _CONFIGS,
    "broker/topics/topic.py Topic.parse": _ARGUMENTS,
    "broker/topics/topic.py _parsed": _ARGUMENTS,
    "broker/topics/topic.py topics_of": _ARGUMENTS,
    "broker/transport/": _LOOP,
    "broker/wire/answers.py Lazily.__contains__": _WIRE,
    "broker/wire/answers.py Lazily.__len__": _WIRE,
    "broker/wire/api/call.py Call.hold": _WIRE,
    "broker/wire/api/call.py Call.owner": _WIRE,
    "broker/wire/api/call.py Call.release": _WIRE,
    "broker/wire/api/describe_cluster.py": _DECIDES_NOTHING,
    "broker/wire/api/fetch.py _refuse": _ODD,
    "broker/wire/api/find_coordinator.py": _DECIDES_NOTHING,
    "broker/wire/api/list_offsets.py _refuse": _ODD,
    "broker/wire/api/metadata.py _refuse": _ODD,
    "broker/wire/api/no_groups.py": _DECIDES_NOTHING,
    "broker/wire/api/produce.py _first_codec": _WIRE,
    "broker/wire/api/produce.py _own": _WIRE,
    "broker/wire/byte_call.py": _WIRE,
    "broker/wire/client_requests.py": _WIRE,
    "broker/wire/codec.py": _WIRE,
    "broker/wire/connection.py": _WIRE,
    "broker/wire/copying.py": _WIRE,
    "broker/wire/framing.py": _WIRE,
    "broker/wire/guard.py": _WIRE,
    "broker/wire/half_frames.py": _WIRE,
    "broker/wire/modules.py": _WIRE,
    "broker/wire/pipeline.py Pipeline.__len__": _WIRE,
    "broker/wire/pipeline.py Slot.produces": _WIRE,
    "broker/wire/ports.py": _WIRE,
    "broker/wire/receiving.py": _WIRE,
    "broker/wire/remarks.py Remarks.once": _WIRE,
    "broker/wire/routes.py": _WIRE,
    "broker/wire/server.py": _WIRE,
    "broker/wire/translation/": _WIRE,
    "broker/wire/walk.py": _WIRE,
}


def excuse_of(function: Function) -> str | None:
    """The part of `FUNCTIONS_EXCUSED` that excuses a function; None: nothing does."""
    folders = function.file.split("/")[:-1]
    names = function.name.split(".")
    for depth in range(1, len(folders) + 1):
        place = "/".join(folders[:depth]) + "/"
        if place in FUNCTIONS_EXCUSED:
            return place
    if f"{function.file} {function.name}()" in FUNCTIONS_EXCUSED:
        return f"{function.file} {function.name}()"
    for depth in range(len(names) + 1):
        place = f"{function.file} {'.'.join(names[:depth])}".rstrip()
        if place in FUNCTIONS_EXCUSED:
            return place
    return None
