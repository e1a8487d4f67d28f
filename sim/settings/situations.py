"""Situations: settings that belong together. Half of the seeds take one.

Settings that are drawn one by one seldom meet. For example, only one in thousands of seeds had
clients that believe the last answer, that ask often, and two leaders at the same time. A situation
has the settings with which a person would provoke one kind of trouble: the programs of the nemesis
that lead there, often, and clients and limits for which it matters. It names no mutant, and leaves
everything else to the draw.

If a setting was given, no situation with that setting is taken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Setting = int | str | bool
Situation = Mapping[str, Sequence[Setting]]
"""By setting, the values that it is drawn from."""

_OFTEN = (250, 500, 1_000)

SITUATIONS: Mapping[str, Situation] = {
    "answers lost": {
        "faults": ("lose-answer reset-clients kill freeze cut-clients transfer",),
        "fault_every_ms": _OFTEN,
        "leader_queue_bytes": (300, 2_000, 32 << 20),
    },
    "elections": {
        "faults": ("die-voted win-and-go rivals kill power blackout halves isolate",),
        "fault_every_ms": _OFTEN,
        "batch_records": (1, 4),
    },
    "rivals": {"faults": ("rivals die-voted power",), "fault_every_ms": (500, 1_000)},
    "logs that part": {
        "faults": (
            "figure-8 late-leader late-sync two-leaders die-appended transfer",
            "held-truncation transfer kill",
        ),
        "fault_every_ms": (500, 1_000, 2_000),
        "batch_records": (1,),
    },
    "deposed leaders": {
        "nodes": (3,),
        "replicas": (3,),
        "faults": ("two-leaders", "two-leaders late-leader", "halves two-leaders transfer"),
        "fault_every_ms": (1_000, 2_000),
        "arrivals": ("even",),
        "leader_epochs": (False, True),
        "metadata_max_age_ms": (100,),
    },
    "clients of the deposed": {
        "nodes": (3,),
        "replicas": (3,),
        "load_ms": (5_000, 20_000),
        "faults": ("two-leaders", "two-leaders freeze"),
        "fault_every_ms": (500, 1_000),
    },
    "clients that give up": {
        "faults": ("stray-request freeze", "stray-request late-requests freeze kill transfer"),
        "fault_every_ms": _OFTEN,
        "delivery_timeout_ms": (1_000,),
        "request_timeout_ms": (400,),
    },
    "pipelines": {
        "client_rtt_us": (50_000,),
        "batch_records": (1,),
        "in_flight": (5,),
        "reset_ppm": (20_000, 0),
        "faults": ("transfer", "transfer lose-answer kill"),
        "fault_every_ms": (500, 2_000),
    },
    "snapshots": {
        "faults": ("delete-records overtaken power isolate kill", "overtaken"),
        "fault_every_ms": _OFTEN,
        "snapshot_chunk_bytes": (64, 256 << 10),
        "max_append_entries": (2, 500),
    },
    "bad disks": {
        "nodes": (3, 5),
        "replicas": (3,),
        "faults": ("torn-write kill power", "bit-rot lost-disk disk-error kill transfer"),
        "fault_every_ms": _OFTEN,
    },
    "slow disks": {
        "nodes": (3, 5),
        "replicas": (3,),
        "sync_us": (5_000, 30_000),
        "faults": ("late-sync", "stall stuck-disk late-sync power transfer"),
        "fault_every_ms": (500, 1_000, 2_000),
    },
    "few in sync": {
        "nodes": (3,),
        "replicas": (3,),
        "min_insync": (2, 3),
        "replica_lag_ms": (1_000,),
        "faults": ("freeze isolate slow-node kill deaf", "kill transfer one-link"),
        "fault_every_ms": _OFTEN,
    },
    "held records": {
        "nodes": (3,),
        "replicas": (3,),
        "min_insync": (3,),
        "replica_lag_ms": (1_000,),
        "acks": (1,),
        "load_ms": (5_000, 20_000),
        "probes": (False,),
        "faults": ("isolate freeze",),
        "fault_every_ms": (2_000,),
    },
    "forgotten producers": {
        "producer_expiry_ms": (300, 86_400_000),
        "max_producers": (2,),
        "producers": (3,),
        "faults": ("drift jump-clock freeze slow-node transfer kill", "lose-decision transfer"),
        "fault_every_ms": _OFTEN,
    },
    "forgotten in snapshots": {
        "producer_expiry_ms": (300,),
        "producers": (3,),
        "faults": ("delete-records overtaken power kill isolate", "lose-decision lead-again"),
        "fault_every_ms": _OFTEN,
    },
    "controllers": {
        "faults": ("die-deciding controller kill", "die-deciding controller power halves transfer"),
        "fault_every_ms": _OFTEN,
        "catalog_entries": (3, 1_000),
    },
    "late copies": {
        "faults": ("repeat-late transfer isolate kill", "repeat-late two-leaders late-leader"),
        "fault_every_ms": (500, 1_000),
    },
    "leaders that return": {
        "nodes": (3,),
        "replicas": (3,),
        "faults": ("lead-again", "lead-again isolate kill", "lead-again lose-kind slow-link"),
        "fault_every_ms": (500, 1_000),
        "replica_lag_ms": (1_000, 10_000),
        "min_insync": (1, 2, 3),
    },
    "Kafka": {"profile": ("kafka-4.3",), "fault_every_ms": _OFTEN},
    "Kafka, few in sync": {
        "profile": ("kafka-4.3",),
        "nodes": (3,),
        "replicas": (3,),
        "min_insync": (2, 3),
        "replica_lag_ms": (1_000,),
        "faults": ("freeze isolate slow-node slow-link kill transfer", "slow-link transfer"),
        "fault_every_ms": _OFTEN,
    },
    "Redpanda": {"profile": ("redpanda-25.3", "redpanda-24.3"), "fault_every_ms": _OFTEN},
    "two programs": {"fault_kinds": (2,), "fault_every_ms": _OFTEN},
    "four programs": {"fault_kinds": (4,), "fault_every_ms": _OFTEN},
    "eight programs": {"fault_kinds": (8,), "fault_every_ms": _OFTEN},
    "a leader left out": {
        "probes": (True,),
        "nodes": (3,),
        "replicas": (3,),
        "leader_left_out": (True,),
        "delivery_timeout_ms": (60_000,),
        "faults": ("stuck-disk", "deaf", "freeze"),
        "fault_every_ms": (1_000, 5_000),
    },
    "sequences that wrap": {
        # With more in flight, the second batch of an unknown producer may be taken for its first
        # (0012).
        "profile": ("reference",),
        "first_sequence": (2_147_483_640, 2_147_483_647),
        "in_flight": (1,),
        "max_producers": (1_000,),
        "producer_expiry_ms": (86_400_000,),
    },
}
"""The situations by name."""
