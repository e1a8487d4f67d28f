"""Whatever breaks a run is its verdict, with a tape: what ends it, and what nobody heard of.

Tests have it break in the middle of all the rest, as no seed is known to: an answer that cannot be
delivered, an event that raises an exception, events that ask for one another without delay.
"""

import logging

import pytest
from typer.testing import CliRunner

from ottla.broker.errors import ConfigError
from ottla.broker.wire.pipeline import Pipeline
from ottla.commands.sim.app import app
from ottla.idempotency.table import ProducerTable
from ottla.log.errors import StoreError
from ottla.sim import run as run_module
from ottla.sim import whole as whole_module
from ottla.sim.chance.choices import Drawn, Replayed, Tape
from ottla.sim.ending.breaking import anomaly_here, told
from ottla.sim.history.history import History
from ottla.sim.invariants.findings import Anomaly
from ottla.sim.mutants.catalogue import BY_ID
from ottla.sim.run import Verdict, replay, run, undisturbed
from ottla.sim.scenarios import script as script_module
from ottla.sim.scenarios.script import Script
from ottla.sim.settings.settings import RunConfig
from ottla.sim.studies.bronze import Work, histories
from ottla.sim.sweeps.canary import canary
from ottla.sim.sweeps.kills import kills
from ottla.sim.sweeps.shrink import Shrinker
from ottla.sim.sweeps.shrink_run import replayer
from ottla.sim.sweeps.tape_file import Case
from ottla.sim.whole import run_whole
from ottla.sim.world.kernel import AT_ONCE, Kernel
from ottla.sim.world.world import World
from studies_tiny import TINY

SHORT = RunConfig(profile="reference-strict", load_ms=1_000, records=12)
SENT = "> nodes 1\n> producers P=7\n> send P A to 1 seq 0\n> run 1s\n"
LOGGER = logging.getLogger("ottla")


@pytest.fixture
def answering(monkeypatch):
    """The first answer to a produce request of every world cannot be delivered. Gives what makes
    the exception, to be set."""
    kernel, done, worlds = Kernel.__init__, Pipeline.done, []
    made = {"error": lambda: AssertionError("no slot\nlike that")}

    def begun(self):
        worlds.append(self)
        kernel(self)

    def failing(self, slot):
        if worlds and slot.produces:
            worlds.clear()
            error = made["error"]()
            raise error
        done(self, slot)

    monkeypatch.setattr(Kernel, "__init__", begun)
    monkeypatch.setattr(Pipeline, "done", failing)
    return made


def broke_at_an_answer(told):
    return "an answer could not be delivered: AssertionError: no slot like that, at test_b" in told


@pytest.mark.slow
@pytest.mark.usefixtures("answering")
def test_what_is_raised_where_answers_are_delivered_fails_the_run():
    """The client timed out and tried again, and the run was called good."""
    outcome = run(3, SHORT)
    assert outcome.verdict is Verdict.FAILED
    assert [each.invariant for each in outcome.anomalies] == ["sim-I00"]
    assert broke_at_an_answer(outcome.reason), outcome.reason
    assert 0 < outcome.anomalies[0].eid < len(outcome.rows) - 1, "where it was, not where it ended"
    again = replay(outcome.tape, outcome.config, Replayed)
    assert (again.digest, again.anomalies) == (outcome.digest, outcome.anomalies)


class Kept(logging.Handler):
    """Keeps what is logged."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record.getMessage())


@pytest.mark.slow
@pytest.mark.usefixtures("answering")
def test_how_the_log_is_set_up_changes_nothing_and_it_is_as_before_afterwards():
    first = run(3, SHORT)
    before, handlers, handler = dict(vars(LOGGER)), list(LOGGER.handlers), Kept()
    LOGGER.addHandler(handler)
    logging.disable(logging.CRITICAL)
    try:
        assert run(3, SHORT).anomalies == first.anomalies
    finally:
        logging.disable(logging.NOTSET)
    assert run(3, SHORT).anomalies == first.anomalies
    LOGGER.error("heard")
    LOGGER.removeHandler(handler)
    assert handler.records == ["heard"]
    assert vars(LOGGER).keys() == before.keys()
    assert (LOGGER.disabled, LOGGER.handlers) == (False, handlers)


def test_one_run_is_not_blamed_for_another(answering):
    assert run(4, SHORT).verdict is Verdict.FAILED
    raised = []

    def as_faults_do():
        raised.append(StoreError("as faults do"))
        return raised[0]

    answering["error"] = as_faults_do
    assert run(4, SHORT).verdict is Verdict.OK, "a store that fails is no bug"
    assert len(raised) == 1


def test_a_node_that_stops_by_itself_is_told_of_once(monkeypatch):
    def broken(*_):
        raise AssertionError("3 is not 4")

    monkeypatch.setattr(ProducerTable, "decide", broken)
    outcome = run(3, SHORT)
    assert outcome.verdict is Verdict.FAILED
    (anomaly,) = outcome.anomalies
    assert anomaly.invariant == "sim-I00"
    assert anomaly.text.startswith("node ")
    assert anomaly.text.endswith(": AssertionError: 3 is not 4")


@pytest.mark.usefixtures("answering")
def test_nor_is_it_swallowed_in_a_run_as_it_is_set():
    outcome, _ = run_whole(Drawn(3), SHORT)
    assert outcome.verdict is Verdict.FAILED
    assert outcome.anomalies[0].invariant == "sim-I00"
    assert broke_at_an_answer(outcome.reason)


@pytest.mark.usefixtures("answering")
def test_nor_in_a_scenario():
    script = Script()
    with undisturbed():
        told = script.play(f"{SENT}> judge\n")
    assert "sim-I00" in script.unexpected
    assert broke_at_an_answer(told), told
    sound = "> nodes 1\n> judge\n"
    with undisturbed():
        script.play(sound)
    assert script.found == []


def for_good(kernel):
    """Two events that ask for each other without delay."""

    def ping():
        kernel.after(0, pong)

    def pong():
        kernel.after(0, ping)

    ping()


@pytest.fixture
def in_the_load(monkeypatch):
    """Does something to the world of a run 0.3 s after its load began."""
    quiet = World.quiet

    def do(act):
        def no_longer(self, *, now):
            quiet(self, now=now)
            if not now:
                self.kernel.after(300_000, act, self)

        monkeypatch.setattr(World, "quiet", no_longer)

    return do


@pytest.mark.slow
def test_time_that_stands_still_is_a_run_that_comes_to_no_rest(in_the_load):
    in_the_load(lambda world: for_good(world.kernel))
    outcome = run(3, SHORT)
    assert outcome.verdict is Verdict.FAILED
    (anomaly,) = outcome.anomalies
    assert anomaly.invariant == "sim-I31"
    assert anomaly.text.startswith(f"time stands still: {AT_ONCE} events in a row at ")
    assert len(outcome.tape) > 0
    assert replay(outcome.tape, outcome.config, Replayed).digest == outcome.digest


def bad(_):
    raise KeyError("nobody")


@pytest.mark.slow
def test_an_exception_in_a_run_is_its_verdict_and_says_where(in_the_load):
    in_the_load(bad)
    outcome = run(3, SHORT)
    assert outcome.verdict is Verdict.FAILED
    (anomaly,) = outcome.anomalies
    assert anomaly.invariant == "sim-I00"
    line = bad.__code__.co_firstlineno + 1
    told = f"the run itself broke: KeyError: 'nobody', at test_breaking.py:{line}"
    assert anomaly.text == told
    assert replay(outcome.tape, outcome.config, Replayed).anomalies == [anomaly]
    shrunk = Shrinker(
        Case(outcome.config, outcome.tape), replayer(anomaly), lambda: False, lambda *_: None
    )
    assert len(shrunk.run().tape) < len(outcome.tape)
    whole, _ = run_whole(Drawn(3), SHORT, None, [lambda world: world.kernel.after(9, bad, None)])
    assert whole.anomalies[0].text == told


@pytest.mark.slow
def test_commands_tell_of_it_and_do_not_end_with_it(in_the_load, tmp_path):
    in_the_load(bad)
    settings = ["--set", "load_ms=1000", "--set", "records=12"]
    for words in (
        ["run", "--seed", "3", "--tape", str(tmp_path / "a.tape")],
        ["explain", "3", "--out", str(tmp_path / "a.html")],
        ["shrink", "3", "--seconds", "1", "--out", str(tmp_path / "b.tape")],
        ["why", "3", "--tries", "2"],
    ):
        done = CliRunner().invoke(app, [*words, *settings])
        assert done.exception is None or isinstance(done.exception, SystemExit), words
        assert done.exit_code in {0, 1}, done.output
    assert "the run itself broke: KeyError" in (tmp_path / "a.html").read_text(encoding="utf-8")
    assert {each.name for each in tmp_path.iterdir()} == {"a.tape", "a.html", "b.tape"}


def test_a_matrix_goes_on_behind_it_and_nothing_was_killed(monkeypatch):
    monkeypatch.setattr(World, "boot", bad)
    found = kills(BY_ID["M06"], range(2))
    assert (found.seeds, found.killed, found.failing, found.invariants) == (2, 0, None, ())
    assert found.broke == (0, 1)
    told = CliRunner().invoke(app, ["mutants", "M06", "--seeds", "2"])
    assert told.exit_code == 1
    assert "0 of 2 failed" in told.stdout
    assert "     2 broke by themselves, a bug of the simulator" in told.stdout
    assert "the first is seed 0\n" in told.stdout


def test_a_canary_that_broke_is_not_noticed(monkeypatch):
    monkeypatch.setattr(World, "boot", bad)
    found = canary()
    assert (found.noticed, found.invariant) == (False, "")
    assert str(found).startswith("void: the canary, mutant M06, was not noticed")
    assert "because its run ended with KeyError: 'nobody', at test_breaking.py:" in str(found)


def test_no_figure_of_a_study_counts_it(in_the_load):
    in_the_load(bad)
    for swarm in ("true", "false"):
        (batch,) = histories(Work(f"swarm = {swarm}\n{TINY}", 3, 1.0), [0])
        (row,) = batch.to_pylist()
        assert (row["kind"], row["code"]) == ("breakdown", "KeyError")
        assert row["told"].startswith("'nobody', at test_breaking.py:")


@pytest.fixture
def all_explained(monkeypatch):
    """Disks forget, and that explains whatever was found."""
    for module in (run_module, whole_module, script_module):
        monkeypatch.setattr(module, "beyond_the_budget", lambda _: True, raising=False)
        monkeypatch.setattr(module, "weighed", lambda *_: (["a disk forgot"], []))


@pytest.mark.usefixtures("all_explained")
def test_no_fault_explains_that_a_run_broke(in_the_load):
    in_the_load(bad)
    for outcome in (run(3, SHORT), run_whole(Drawn(3), SHORT)[0]):
        assert outcome.verdict is Verdict.FAILED
        assert [each.invariant for each in outcome.anomalies] == ["sim-I00"]
        assert outcome.weakened == ["a disk forgot"]
        assert outcome.broke
        assert outcome.broke.error == "KeyError"


@pytest.mark.usefixtures("all_explained", "answering")
def test_nor_what_was_swallowed():
    for outcome in (run(3, SHORT), run_whole(Drawn(3), SHORT)[0]):
        assert outcome.verdict is Verdict.FAILED
        assert broke_at_an_answer(outcome.reason)
        assert outcome.broke is None
    script = Script()
    with undisturbed():
        script.play(f"{SENT}> disk-lies 1\n> judge\n")
    assert [each.invariant for each in script.found] == ["sim-I00"]


@pytest.mark.usefixtures("answering")
def test_a_run_that_came_to_its_end_is_judged_whatever_was_swallowed(monkeypatch):
    monkeypatch.setattr(run_module, "judged_at_the_end", lambda _: [Anomaly("sim-I01", 1, "lost")])
    outcome = run(3, SHORT)
    assert [each.invariant for each in outcome.anomalies] == ["sim-I01", "sim-I00"]
    assert [each.eid for each in outcome.anomalies] == [1, outcome.anomalies[1].eid]


def test_what_was_raised_says_the_same_in_each_process():
    assert told(KeyError(object())) == "KeyError: <object object at 0x…>"
    assert anomaly_here(History(lambda: 0), "sim-I00", f"node 1: {object()}").text.endswith(
        "at 0x…>"
    )


def test_a_run_that_breaks_before_anything_has_happened_has_a_row_that_says_so(monkeypatch):
    monkeypatch.setattr(World, "boot", bad)
    outcome = run(3, SHORT.with_(faults="lost-sync"))
    (anomaly,) = outcome.anomalies
    row = outcome.rows[anomaly.eid]
    assert (anomaly.invariant, row.kind, row.code) == ("sim-I00", "phase", "broke")


def test_a_judge_that_breaks_is_a_verdict_as_well(monkeypatch):
    monkeypatch.setattr(run_module, "weaker", bad)
    outcome = run(3, SHORT)
    assert outcome.verdict is Verdict.FAILED
    assert "the run itself broke: KeyError: 'nobody', at test_breaking.py:" in outcome.reason
    assert outcome.rows[-1].kind == "final"


def test_what_is_refused_stays_refused():
    with pytest.raises(ConfigError, match="no such fault: rain"):
        replay(Tape({}), SHORT.with_(faults="rain"), Replayed)
