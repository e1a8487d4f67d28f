"""What a plugin adds to a run, and what it leaves alone.

Runs are as they are set, without a swarm, and short: their digests are compared with each other.
Only the first test draws plain seeds as sweeps do, with and without a plugin that has an invariant.
Behind each test this process has forgotten its plugins.
"""

import pytest

from ottla.broker.errors import ConfigError
from ottla.broker.partition.partition import Partition
from ottla.raft import quorum
from ottla.sim.chance.choices import Drawn, Replayed
from ottla.sim.clients.workload import models_of
from ottla.sim.invariants.registry import INVARIANTS, said_of
from ottla.sim.mutants.catalogue import CATALOGUE
from ottla.sim.nemesis.beyond import BEYOND
from ottla.sim.nemesis.nemesis import check_faults
from ottla.sim.nemesis.programs import PROGRAMS
from ottla.sim.plugins.own import PREFIX
from ottla.sim.run import Verdict, replay, run, run_choices
from ottla.sim.whole import run_whole
from sim_plugins import SHORT, no_plugins, with_plugin

INVARIANT = '''
@invariant("my-first-term")
def first_term(index):
    """Nobody leads a partition in a later term than the first."""
    for row in index.rows["leader"]:
        yield row, f"node {row.node} leads term {row.term}"
'''
FAULT = '''
@fault("my-stall", nodes=2)
def stall(hand):
    """A disk takes its time."""
    hand.world.disks[hand.node()].stall(hand.span())
'''
MUTANT = '''
from ottla.raft import quorum
from ottla.raft.core import RaftCore

@mutant("my-deaf")
def deaf(replace):
    """answers to anybody who is a candidate"""
    replace(quorum, "majority", lambda voters: voters // 2)
'''
CLIENT = '''
from ottla.broker.wire.requests import MetadataRequest

@client("my-asker")
def asker(visit):
    """Asks a node for its topics."""
    request = MetadataRequest(None, allow_auto_topic_creation=False)
    heard = lambda answer: visit.note(f"heard of {len(answer.topics)} topics", aux=visit.number)
    visit.later(1_000, visit.ask, visit.stream.pick(visit.world.nodes), request, heard)
'''

WRITER = '''
from ottla.log.build import build_batch
from ottla.sim.world.frames import create_topic, produce, produced

@client("my-writer")
def writer(visit):
    """Writes a record into a topic of its own."""

    def created(answer):
        visit.note(f"create: {answer.topics[0].error_code.name}")
        visit.later(300_000, write)

    def write():
        request = produce(-1, 1_000_000, ((0, build_batch([b"mine"])),), "mine")
        for node in visit.world.nodes:
            visit.ask(node, request, written)

    def written(answer):
        (part,) = produced(answer)
        if part.error.name == "NONE":
            visit.note(f"write: {part.error.name}")

    visit.ask(1, create_topic("mine", 1, 1, 1_000_000), created)
'''
PRODUCER = '''
from ottla.sim.clients.producer_java import JavaProducer

@client("my-patient")
class Patient(JavaProducer):
    """Java's producer, with one request at a time."""

    def start(self):
        self.in_flight = 1
        self.note("fault", client=self.number, code="patience")
        super().start()
'''


@pytest.fixture(autouse=True)
def _no_plugins():
    with no_plugins():
        yield


def play(config, seed=3):
    """A run as it is set: nothing of it is drawn by the swarm."""
    return run_choices(Drawn(seed), config, swarm=False)


def faults(outcome):
    """What was done on purpose."""
    return [row.code for row in outcome.rows if row.kind == "fault"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [7, 11, 42])
def test_a_plain_run_is_what_it_was_and_an_invariant_changes_none(tmp_path, seed):
    plain = run(seed)
    judged = run(seed, with_plugin(tmp_path, INVARIANT, type(SHORT)()))
    assert run(seed).digest == plain.digest == judged.digest
    assert plain.config.name == run(seed).config.name != judged.config.name
    assert [each.invariant for each in judged.anomalies] == ["my-first-term"]


def test_an_invariant_judges_at_the_end_and_is_named(tmp_path):
    config = with_plugin(tmp_path, INVARIANT, fault_every_ms=0)
    outcome = play(config)
    assert outcome.verdict is Verdict.FAILED
    assert outcome.broke is None
    (found,) = outcome.anomalies
    assert outcome.rows[found.eid].kind == "leader"
    assert outcome.reason.startswith(f"my-first-term at event {found.eid}: node ")
    says = "Nobody leads a partition in a later term than the first."
    assert said_of("my-first-term", config.plugins) == ("my-first-term", says)
    assert play(SHORT.with_(fault_every_ms=0)).digest == outcome.digest


def test_a_whole_run_has_plugins_too(tmp_path):
    outcome, _ = run_whole(Drawn(3), with_plugin(tmp_path, INVARIANT + CLIENT, fault_every_ms=0))
    assert [each.invariant for each in outcome.anomalies] == ["my-first-term"]
    assert "heard of 1 topics" in faults(outcome)


def test_an_invariant_that_breaks_is_told_with_its_line_and_costs_no_other(tmp_path):
    text = (
        '@invariant("my-broken")\n'
        "def broken(index):\n"
        '    """Holds."""\n'
        "    yield index.rows['inv'][0], index.rows['lead']\n"
    )
    outcome = play(with_plugin(tmp_path, text + INVARIANT, fault_every_ms=0))
    told = "plugin mine.py, line 5 in broken broke: KeyError: 'lead', at mine.py:5"
    assert [each.invariant for each in outcome.anomalies] == ["my-first-term", "sim-I00"]
    assert outcome.anomalies[1].text == told
    assert str(outcome.broke).startswith("KeyError")


@pytest.mark.parametrize("found", ["7", "row, 7", "'row', 'text'", "[row, 'text']"])
def test_an_invariant_that_yields_something_else_is_told(tmp_path, found):
    text = (
        '@invariant("my-odd")\n'
        "def odd(index):\n"
        '    """Holds."""\n'
        "    row = index.rows['inv'][0]\n"
        f"    yield {found}\n"
    )
    outcome = play(with_plugin(tmp_path, text, fault_every_ms=0))
    odd = found.startswith("[")
    assert ("my-odd yields a row and a text, not" in outcome.anomalies[0].text) is not odd
    assert [each.invariant for each in outcome.anomalies] == ["my-odd" if odd else "sim-I00"]


def test_a_fault_may_be_named_and_a_seed_and_a_tape_replay_it(tmp_path):
    config = with_plugin(tmp_path, FAULT, faults="my-stall")
    outcome = play(config)
    assert "program my-stall" in faults(outcome)
    assert play(config).digest == outcome.digest
    assert replay(outcome.tape, config, Replayed).digest == outcome.digest


@pytest.mark.slow
def test_a_fault_is_drawn_among_those_of_ottla(tmp_path):
    config = with_plugin(tmp_path, FAULT, load_ms=5_000, records=20, fault_every_ms=10)
    found = {told for seed in range(6) for told in faults(play(config, seed))}
    assert {"program my-stall", "program kill"} <= found


def test_a_fault_that_needs_more_nodes_or_another_plugin_is_refused(tmp_path):
    config = with_plugin(tmp_path, FAULT, nodes=1, replicas=1, faults="my-stall")
    with pytest.raises(ConfigError, match="my-stall needs 2"):
        check_faults(config)
    with pytest.raises(ConfigError, match="no such fault: my-stal"):
        check_faults(config.with_(faults="my-stal"))
    with pytest.raises(ConfigError, match="no such fault: my-stall"):
        check_faults(config.with_(plugins=""))


def test_a_fault_that_breaks_is_told_with_its_line(tmp_path):
    text = (
        '@fault("my-broken")\n'
        "def broken(hand):\n"
        '    """Breaks later."""\n'
        "    hand.later(5, late, hand)\n"
        "def late(hand):\n"
        "    hand.world.config.with_(nodes=0)\n"
    )
    outcome = play(with_plugin(tmp_path, text, faults="my-broken"))
    assert "plugin mine.py, line 7 in late broke: ConfigError: nodes is 0" in outcome.reason
    assert outcome.broke is not None


@pytest.mark.slow
def test_a_mutant_lacks_its_mechanism_for_the_length_of_its_run(tmp_path):
    before = quorum.majority
    config = with_plugin(tmp_path, MUTANT)
    plain = play(config)
    assert play(SHORT).digest == plain.digest
    mutated = play(config.with_(mutants="my-deaf"))
    assert mutated.digest != plain.digest
    assert quorum.majority is before
    with pytest.raises(ConfigError, match=r"there is no my-dead; one of M01 .* my-deaf"):
        config.with_(mutants="my-dead")


def test_a_client_asks_and_says_what_it_heard(tmp_path):
    config = with_plugin(tmp_path, CLIENT, fault_every_ms=0)
    outcome = play(config)
    (said,) = (row for row in outcome.rows if row.code == "heard of 1 topics")
    assert said.client == said.aux == 5_000_000
    assert outcome.verdict is Verdict.OK
    assert replay(outcome.tape, config, Replayed).digest == outcome.digest


def test_a_client_may_have_a_topic_of_its_own(tmp_path):
    """Its name was read as that of a numbered topic, and the run itself broke."""
    outcome = play(with_plugin(tmp_path, WRITER, fault_every_ms=0))
    heard = [row.code for row in outcome.rows if row.kind == "fault" and row.client == 5_000_000]
    assert heard == ["create: NONE", "write: NONE"]
    assert (outcome.verdict, outcome.reason) == (Verdict.OK, "no invariant is broken")


def test_a_class_of_producers_sends_the_records_where_it_is_named(tmp_path):
    config = with_plugin(tmp_path, PRODUCER, fault_every_ms=0)
    outcome = play(config.with_(client_model="my-patient"))
    begun = [row for row in outcome.rows if row.code == "patience"]
    assert [row.client for row in begun] == [1, 2]
    assert outcome.verdict is Verdict.OK
    assert sum(row.kind == "ok" for row in outcome.rows) == config.records
    assert play(config).digest == play(SHORT.with_(fault_every_ms=0)).digest
    with pytest.raises(ConfigError, match="client_model is 'my-patien'"):
        config.with_(client_model="my-patien")
    odd = with_plugin(tmp_path, PRODUCER.replace("(JavaProducer)", ""), client_model="my-patient")
    with pytest.raises(ConfigError, match="my-patient is no subclass of Producer"):
        models_of(odd)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("time()", "time.time is refused in a simulated run"),
        ("list(set('ab'))", "going through a set, which has no order, is refused"),
    ],
)
def test_what_no_seed_decides_is_refused_to_a_plugin(tmp_path, line, told):
    text = (
        "from time import time\n"
        '@client("my-asker")\n'
        "def asker(visit):\n"
        '    """Asks what no seed decides."""\n'
        f"    {line}\n"
    )
    outcome = play(with_plugin(tmp_path, text))
    assert "plugin mine.py, line 6 in asker broke: RefusedError" in outcome.reason
    assert told in outcome.reason


def test_no_id_of_ottlas_begins_as_those_of_plugins_do():
    programs = [each.name for each in (*PROGRAMS, *BEYOND)]
    ids = [*programs, *(row.id for row in INVARIANTS)]
    ids += [row.id for row in CATALOGUE]
    assert not [each for each in ids if each.startswith(PREFIX)]


def test_what_a_mutant_replaces_is_there_again_if_the_run_breaks(tmp_path):
    text = (
        "from ottla.broker.partition.partition import Partition\n"
        '@mutant("my-broken")\n'
        "def broken(replace):\n"
        '    """the application of entries"""\n'
        '    replace(Partition, "apply", lambda self, *_: 1 / 0)\n'
    )
    before = Partition.apply
    outcome = play(with_plugin(tmp_path, text, mutants="my-broken"))
    assert "ZeroDivisionError: division by zero, at plugin mine.py, line 6 in" in outcome.reason
    assert Partition.apply is before
