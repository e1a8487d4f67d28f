"""A run as it is set, to its end: what studies count, from the command line too.

Its verdict is that of the whole history and tells what the end has excused, as that of a drawn run
does; what goes wrong in it has a name and strikes as often as it says.
"""

import re

import pytest

from cli_process import ottla
from ottla.broker.errors import ConfigError
from ottla.sim.chance.choices import Drawn
from ottla.sim.nemesis.failures import FAILURES
from ottla.sim.recording.record import record
from ottla.sim.run import Verdict
from ottla.sim.settings.settings import RunConfig
from ottla.sim.studies.study import catalogue, parse
from ottla.sim.whole import run_whole

(BASE, *_) = (each.config for each in parse(catalogue()["acks"]).variants if each.config.acks == -1)
"""Slow syncs, and a producer that gives up soon."""
OFF = BASE.with_(acks=1, idempotent=False, flush="off", records=100, load_ms=8_000)


@pytest.mark.slow
def test_one_seed_is_one_run():
    outcome, again, other = (run_whole(Drawn(seed), OFF, "all lose power")[0] for seed in (7, 7, 8))
    assert (outcome.rows, outcome.digest) == (again.rows, again.digest)
    assert outcome.digest != other.digest


def test_it_goes_on_behind_what_is_broken_and_says_all_of_it():
    outcome, broken = run_whole(Drawn(0), OFF, "all lose power")
    assert outcome.rows[-1].kind == "final"
    assert len(broken) > 1
    assert len(outcome.weakened) >= len(broken)
    assert len(outcome.rows) > 100


def test_flush_policy_off_promises_nothing_that_could_be_failed():
    outcome, broken = run_whole(Drawn(0), OFF)
    assert (outcome.verdict, outcome.anomalies) == (Verdict.WEAKENED, [])
    assert broken == {"sim-I24"}
    assert outcome.reason.startswith("nothing waits for a sync, so sim-I24 at row ")


@pytest.mark.slow
def test_it_says_what_was_lost_where_less_was_promised():
    """A study's page told of 49 records that were gone, and the run that it named of nothing."""
    outcome, broken = run_whole(
        Drawn(0), BASE.with_(acks=1, idempotent=False), "the leader is cut off"
    )
    assert (outcome.verdict, outcome.anomalies, broken) == (Verdict.WEAKENED, [], frozenset())
    told = r"[1-9]\d* of \d+ records acknowledged with acks=1 are lost \("
    assert re.match(told, outcome.reason), outcome.reason


@pytest.mark.slow
def test_what_goes_wrong_is_a_plan_by_name():
    with pytest.raises(KeyError):
        run_whole(Drawn(0), OFF, "nobody is killed")
    assert (
        run_whole(Drawn(0), OFF)[0].digest != run_whole(Drawn(0), OFF, "all lose power")[0].digest
    )


@pytest.mark.slow
def test_it_says_whom_the_healed_majority_did_not_have_to_serve():
    """Five partitions were excused in its rows, and it said "no invariant is broken"."""
    config = RunConfig(nodes=7, replicas=1, partitions=20, records=20, load_ms=500)
    outcome, _ = run_whole(Drawn(0), config)
    excused = [row.partition for row in outcome.rows if row.code == "excused"]
    assert len(excused) == 5
    assert outcome.verdict is Verdict.OK
    for partition, told in zip(excused, outcome.unavoidable, strict=True):
        assert told.startswith(f"the end of the run did not check partition {partition}: only ")
    assert outcome.reason == outcome.unavoidable[0] + " (and 4 more)"


def test_it_says_that_clients_gave_up_what_they_had_left():
    """No answer comes in time here, which showed in no word of the verdict."""
    config = RunConfig(
        client_rtt_us=200_000,
        request_timeout_ms=100,
        delivery_timeout_ms=300,
        consumers=0,
        load_ms=1_000,
    )
    outcome, _ = run_whole(Drawn(0), config)
    assert outcome.verdict is Verdict.OK
    assert outcome.reason.startswith(
        "nothing was stored in partition 0 after a majority was healed"
    )


@pytest.mark.slow
def test_it_can_be_recorded_with_what_went_wrong():
    outcome, _ = run_whole(Drawn(0), OFF, "the leader is killed")
    recording = record(
        outcome,
        "Seed 0",
        "",
        lambda choices, watching: run_whole(choices, OFF, "the leader is killed", watching)[0],
    )
    assert recording.digest == outcome.digest
    assert any(step.what == "crash" for step in recording.steps)


@pytest.mark.slow
def test_the_command_line_does_the_same_run():
    outcome, _ = run_whole(Drawn(3), OFF, "the leader is killed")
    settings = [word for line in OFF.told().splitlines() for word in ("--set", told(line))]
    done = ottla("sim", "run", "--seed", "3", "--failure", "the leader is killed", *settings)
    assert f"digest {outcome.digest} " in done.stdout


def told(line):
    """A line of TOML as `--set` takes it."""
    name, _, value = line.partition(" = ")
    return f"{name}={value.strip(chr(34))}"


@pytest.mark.slow
def test_a_plan_that_is_none_and_a_tape_are_refused_in_one_line(tmp_path):
    done = ottla("sim", "run", "--seed", "0", "--failure", "rain")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert (
        "--failure rain: there is no such failure; there are 'a follower is killed', "
        in done.stderr
    )
    done = ottla("sim", "run", "--seed", "0", "--whole", "--tape", tmp_path / "x")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)


LATER = ("a follower lags, the leader loses power", "the leader is cut off and loses power")
"""The power goes 0.3 s after their moment."""


@pytest.mark.parametrize("failure", [each.name for each in FAILURES])
def test_a_failure_strikes_twice_and_a_load_too_short_for_it_is_refused(failure):
    """It was told "ok" of a leader that nobody had killed."""
    least = 7_300 if failure in LATER else 7_000
    config = OFF.with_(load_ms=least, records=20)
    rows = run_whole(Drawn(0), config, failure)[0].rows
    (begun,) = (row.t_us for row in rows if (row.kind, row.code) == ("phase", "load"))
    struck = [row.t_us - begun for row in rows if row.kind == "fault"]
    early = [each for each in struck if each < (least - 5_000) * 1_000]
    late = [each for each in struck if each not in early]
    assert early
    assert late
    assert min(early) >= 1_000_000
    assert 6_000_000 <= min(late) <= max(late) < least * 1_000
    with pytest.raises(ConfigError) as refused:
        run_whole(Drawn(0), config.with_(load_ms=least - 1), failure)
    first, second = ("2.3", "7.3") if failure in LATER else ("2", "7")
    assert str(refused.value) == (
        f"failure '{failure}' strikes twice, up to {first} s and {second} s after the start: "
        f"load_ms is {least - 1}; {least} at least"
    )


@pytest.mark.parametrize("failure", [each.name for each in FAILURES])
def test_a_failure_of_a_follower_needs_one(failure):
    config = OFF.with_(load_ms=7_300, records=20, nodes=1, replicas=1)
    if "a follower" in failure:
        with pytest.raises(ConfigError, match="needs 2 nodes: nodes is 1"):
            run_whole(Drawn(0), config, failure)
    else:
        outcome, _ = run_whole(Drawn(0), config, failure)
        assert "sim-I00" not in {each.invariant for each in outcome.anomalies}, outcome.reason
