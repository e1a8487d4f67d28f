"""Runs as a whole: determinism, tapes, sweeps and shrinking.

One seed is one history, whatever process it runs in; its tape replays it; a fork keeps its past. A
sweep that was stopped goes on with nothing lost and nothing counted twice.
"""

from __future__ import annotations

import errno
import gc
import json
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path

import msgpack
import pytest
from typer.testing import CliRunner

from ottla.broker.errors import ConfigError
from ottla.commands.sim.app import app
from ottla.sim.chance.choices import Drawn, Forked, Replayed, Tape
from ottla.sim.history.compare import parting
from ottla.sim.machine.code_hash import code
from ottla.sim.machine.pythons import InterpreterError
from ottla.sim.run import Verdict, replay, run, run_choices
from ottla.sim.settings.settings import RunConfig
from ottla.sim.settings.settings_file import from_toml
from ottla.sim.sweeps.meta import Plan as MetaPlan
from ottla.sim.sweeps.meta import check, variants
from ottla.sim.sweeps.shrink import Attempt, Shrinker
from ottla.sim.sweeps.sweep import sweep
from ottla.sim.sweeps.sweep_folder import Plan, SweepError
from ottla.sim.sweeps.tape_file import Case, Kept, TapeError, decode, encode, read, write
from ottla.sim.world.world import World

SHORT = RunConfig(profile="reference-strict", load_ms=2_000, records=40)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_a_seed_has_one_history_and_so_has_its_tape(seed):
    first, second = run(seed, SHORT), run(seed, SHORT)
    assert first.verdict is Verdict.OK, first.reason
    assert first.digest == second.digest
    assert parting(first.rows, second.rows) is None
    again = replay(decode(encode(Case(first.config, first.tape))).case.tape, first.config, Replayed)
    assert again.digest == first.digest
    assert run(seed + 100, SHORT).digest != first.digest


def test_every_record_has_its_outcome_and_most_are_acknowledged():
    outcome = run(3, SHORT)
    kinds = [row.kind for row in outcome.rows]
    asked = kinds.count("inv")
    assert asked > 40  # one more for each partition in the end
    assert kinds.count("ok") + kinds.count("info") + kinds.count("fail") == asked
    assert kinds.count("ok") >= 30
    assert kinds.count("poll") >= kinds.count("ok")


@pytest.mark.slow
def test_a_fork_is_the_tape_until_it_parts():
    outcome = run(2, SHORT)
    middle = outcome.simulated // 2
    worlds: list[World] = []

    def past() -> bool:
        return not worlds or worlds[0].kernel.now < middle

    forked = run_choices(
        Forked(outcome.tape, 99, past), outcome.config, swarm=False, watching=[worlds.append]
    )
    found = parting(outcome.rows, forked.rows)
    assert found is not None
    assert found.left is not None
    assert found.left.t_us >= middle


@pytest.mark.slow
def test_a_run_leaves_no_world_behind():
    """No garbage is collected while one runs, so that thousands in one process must not pile up:
    they did, a megabyte each, because the world was still in use when garbage was collected."""
    gc.collect()
    before = sum(isinstance(each, World) for each in gc.get_objects())
    outcome = run(4, SHORT)
    assert sum(isinstance(each, World) for each in gc.get_objects()) == before
    assert outcome.rows


@pytest.mark.slow
def test_meta_finds_no_mismatch_in_fresh_processes():
    runs = []
    plan = MetaPlan(0, 4, SHORT.told())
    for variant, mismatches in check(plan, variants([], warm=2), progress=lambda: runs.append(1)):
        assert mismatches == [], variant.name
    assert len(runs) == 3 * 4


def test_meta_says_which_interpreter_does_not_run():
    with pytest.raises(InterpreterError, match="no-such-python: No such file"):
        list(check(MetaPlan(0, 1), variants(["no-such-python"])[3:]))


@pytest.mark.slow
def test_a_sweep_goes_on_where_it_stopped(tmp_path):
    plan = Plan(0, 60, SHORT.with_(load_ms=200, records=4, fault_every_ms=0).told())
    first = []
    for result in sweep(plan, 1, tmp_path):
        first.append(result)
        if len(first) == 30:
            break
    assert len(list(tmp_path.glob("part-*.parquet"))) == 2
    whole = list(sweep(plan, 1, tmp_path))
    assert [each.seed for each in whole] == list(range(60))
    assert whole[:30] == first
    assert list(sweep(plan, 2, tmp_path)) == whole
    with pytest.raises(SweepError, match=r"sweep: seeds 0 to 59 with .*; this is seeds 0 to 60 w"):
        list(sweep(replace(plan, seeds=61), 1, tmp_path))


def test_settings_say_what_is_wrong():
    for text, told in (
        ("nodes = 9", "nodes is 9; 1 to 7"),
        ("nodes = 3\nreplicas = 5", "replicas is 5, but there are 3 nodes"),
        ("nods = 3", "no such setting: nods"),
        ('nodes = "3"', "nodes is '3'; a whole number is expected"),
        ('idempotent = "yes"', "idempotent is 'yes'; true or false is expected"),
        ('flush = "sometimes"', "flush is 'sometimes'; one of each-turn"),
        ("nodes = ", "not TOML"),
        ("loss_ppm = -1", "loss_ppm is -1"),
        ("loss_ppm = 1000001", "loss_ppm is 1000001; 0 to 1000000"),
        ("heartbeat_ms = 0", "heartbeat_ms is 0; 1 to"),
        ("leader_queue_bytes = 0", "leader_queue_bytes is 0; 1 to"),
        ("rtt_us = 99999999999999999999", "rtt_us is 99999999999999999999; 0 to"),
        ("request_timeout_ms = 1", "request_timeout_ms is 1; with these round trips"),
        ("said = 1", "no such setting: said"),
        ('profile = "zen"', "profile: "),
        ('links = "1-2"', "links: '1-2'; write 1-2:20000"),
        ('links = "1-4:5"', "links: '1-4:5'; there are nodes 1 to 3"),
        ("first_sequence = 7", "with reference-strict producers begin at 0; name another profile"),
        ("turn_us = 500001", "turn_us is 500001; 0 to 500000"),
        ("records = 1000001", "records is 1000001; 0 to 1000000"),
        (
            "replica_lag_ms = 50\nheartbeat_ms = 50\nmin_insync = 2",
            r"replica_lag_ms is 50, .* every 50 ms: min_insync \(2\) needs at least 100",
        ),
        ('links = "2-2:5"', "links: '2-2:5'; there are nodes"),
        ('links = "1-2:5 1-2:6"', "links: '1-2:6'; this link is named twice"),
    ):
        with pytest.raises(ConfigError, match=told):
            from_toml(text)
    assert from_toml(SHORT.told()) == SHORT


def test_what_is_no_tape_says_so():
    case = Case(SHORT, Tape({"nemesis": {3: 7}}))
    good = encode(case)
    assert decode(good).case == case
    for bad in (b"", b"\xc1", good[:-3], b"\x80", encode(case).replace(b"records", b"recordz")):
        with pytest.raises(TapeError):
            decode(bad)


@pytest.mark.slow
def test_a_verdict_is_one_line_however_much_there_is_to_say():
    """Of twenty partitions ten may be out of reach."""
    outcome = run(0, SHORT.with_(nodes=7, replicas=1, partitions=20))
    assert outcome.verdict is Verdict.OK
    assert len(outcome.unavoidable) > 1
    more = len(outcome.unavoidable) - 1
    assert outcome.reason.startswith("the end of the run did not check partition ")
    assert outcome.reason.endswith(f"] (and {more} more)")


@pytest.mark.slow
def test_a_tape_with_a_flipped_bit_does_not_replay_as_another_run():
    good = encode(Case(SHORT, Tape({"nemesis": {3: 7, 9: 1000}, "link 1>2": {5: 12}})))
    for place in range(len(good)):
        for bit in range(8):
            bad = bytearray(good)
            bad[place] ^= 1 << bit
            with pytest.raises(TapeError):
                decode(bytes(bad))


def test_a_tape_says_what_code_wrote_it_and_one_without_is_read():
    case = Case(SHORT, Tape({"nemesis": {3: 7}}))
    assert decode(encode(case)) == Kept(case, code())
    config, taken = SHORT.values(), {"nemesis": [[3, 7]]}
    check = blake2b(msgpack.packb([config, taken]), digest_size=16).digest()
    older = {"ottla-tape": 2, "config": config, "taken": taken, "check": check}
    assert decode(msgpack.packb(older)) == Kept(case, "")
    with pytest.raises(TapeError, match="damaged"):
        decode(encode(case).replace(code().encode(), b"0123456789abcdef"))


@pytest.mark.slow
def test_a_tape_of_other_code_is_replayed_with_a_warning(tmp_path, monkeypatch):
    path = tmp_path / "a.tape"
    write(path, Case(SHORT.with_(load_ms=200, records=4), Tape({})))
    same = CliRunner().invoke(app, ["replay", str(path)])
    assert (same.exit_code, same.stderr) == (0, "")
    monkeypatch.setattr("ottla.sim.sweeps.tape_file.code", lambda: "feed")
    write(path, Case(SHORT.with_(load_ms=200, records=4), Tape({})))
    other = CliRunner().invoke(app, ["replay", str(path)])
    assert (other.exit_code, other.stdout) == (0, same.stdout)
    (line,) = other.stderr.splitlines()
    assert line == f"{path}: kept by code feed; this is {code()}, the run may be another"


@pytest.mark.slow
def test_a_sweep_does_not_go_on_with_what_other_code_made(tmp_path):
    plan = Plan(0, 1, SHORT.with_(load_ms=200, records=4).told())
    assert len(list(sweep(plan, 1, tmp_path))) == 1
    manifest = tmp_path / "sweep.json"
    kept = json.loads(manifest.read_text())
    assert kept["code"] == code()
    manifest.write_text(json.dumps(kept | {"code": "feed"}))
    with pytest.raises(SweepError, match=f"by other code: feed at commit .*, this is {code()}; "):
        list(sweep(plan, 1, tmp_path))
    del kept["code"]
    manifest.write_text(json.dumps(kept))
    with pytest.raises(SweepError, match="by other code: an older one"):
        list(sweep(plan, 1, tmp_path))


def test_a_tape_that_does_not_fit_leaves_the_one_before(tmp_path, monkeypatch):
    path, case = tmp_path / "kept.tape", Case(SHORT, Tape({"nemesis": {3: 7}}))
    write(path, case)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space"):
        write(path, Case(SHORT, Tape({})))
    assert read(path).case == case
    assert [each.name for each in tmp_path.iterdir()] == ["kept.tape"]


@pytest.mark.slow
def test_a_sweep_says_in_a_line_what_is_wrong_with_its_folder(tmp_path, monkeypatch):
    plan = Plan(0, 2, SHORT.with_(load_ms=200, records=4).told())
    sweeping = sweep(plan, 1, tmp_path)
    next(sweeping)
    with pytest.raises(SweepError, match="another sweep is at work"):
        next(sweep(plan, 1, tmp_path))
    assert len(list(sweeping)) == 1
    part = tmp_path / "part-00000000.parquet"
    whole = part.read_bytes()
    part.write_bytes(whole[:100])
    with pytest.raises(SweepError, match="without this file its seeds are run again"):
        list(sweep(plan, 1, tmp_path))
    with pytest.raises(SweepError, match="below 2\\*\\*63"):
        list(sweep(replace(plan, first=1 << 63), 1, tmp_path / "huge"))
    (tmp_path / "file").touch()
    with pytest.raises(SweepError, match="file is a file; name a folder"):
        list(sweep(plan, 1, tmp_path / "file"))
    part.unlink()

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(SweepError, match="No space left on device; what is there stays"):
        list(sweep(plan, 1, tmp_path))


def test_shrinking_keeps_what_the_anomaly_needs_and_strikes_the_rest():
    """A stand-in for a run: it fails while two choices of one stream and one setting are there."""
    needed = {("nemesis", 40), ("nemesis", 77)}

    def replayed(case: Case) -> Attempt | None:
        taken = {(name, place) for name, places in case.tape.taken.items() for place in places}
        if not needed <= taken or case.config.records < 3:
            return None
        return Attempt(case, 1_000_000)

    noise = {name: dict.fromkeys(range(100), 9) for name in ("nemesis", "link 1>2", "workload")}
    told: list[int] = []
    shrinker = Shrinker(
        Case(RunConfig(), Tape(noise)), replayed, lambda: False, lambda n, _k, _b: told.append(n)
    )
    best = shrinker.run()
    assert {(n, p) for n, places in best.tape.taken.items() for p in places} == needed
    assert set(best.tape.taken["nemesis"].values()) == {1}
    assert best.config.records in {3, 4, 5}
    assert best.config.load_ms == 1_001
    assert told == sorted(told)
    assert json.dumps(best.tape.taken)


def test_a_run_without_the_anomaly_cannot_be_shrunk():
    with pytest.raises(ValueError, match="does not show"):
        Shrinker(Case(SHORT, Tape()), lambda _: None, lambda: False, lambda *_: None)


FIVE = RunConfig(nodes=5, replicas=5, links="1-2:900 c-2:800 4-5:700 c-4:600")


@pytest.mark.parametrize(
    ("needs", "left"),
    [
        (lambda _: True, (3, 3, "")),
        (lambda config: config.links, (3, 3, "1-2:900 c-2:800")),
        (lambda config: config.nodes == 5, (5, 3, "")),
        (lambda config: config.replicas == 5, (5, 5, "")),
        (lambda config: config.nodes == 5 and config.links, (5, 3, FIVE.links)),
    ],
    ids=["nothing", "links", "nodes", "replicas", "nodes and links"],
)
def test_replicas_and_links_go_with_the_nodes_that_they_need(needs, left):
    """Changed one by one they would make no sense: more replicas than nodes, links to nobody."""

    def replayed(case: Case) -> Attempt | None:
        return Attempt(case, 1_000_000) if needs(case.config) else None

    config = Shrinker(Case(FIVE, Tape()), replayed, lambda: False, lambda *_: None).run().config
    assert (config.nodes, config.replicas, config.links) == left


def test_a_setting_that_makes_no_sense_yet_is_put_back_when_it_does():
    """Syncs of 2 s make no sense beside the default of `sync_stall_ms`, which stands before."""
    slow = RunConfig(sync_us=2_000_000, sync_stall_ms=10_000)
    shrinker = Shrinker(
        Case(slow, Tape()), lambda case: Attempt(case, 0), lambda: False, lambda *_: None
    )
    config = shrinker.run().config
    assert (config.sync_us, config.sync_stall_ms) == (
        RunConfig().sync_us,
        RunConfig().sync_stall_ms,
    )


def test_drawn_streams_are_apart():
    one, other = Drawn(5), Drawn(5)
    for _ in range(10):
        one.stream("a").below(100)
    assert one.stream("b").below(1 << 30) == other.stream("b").below(1 << 30)
