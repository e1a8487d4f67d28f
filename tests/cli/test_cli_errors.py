"""Whatever a user does wrong: one line on standard error that says what to do, and status 2.

Each case starts the command in a process of its own. What is asked before the work of minutes is
refused at once, so a case that takes long has found something too.
"""

import json
import socket
import sys

import pytest
import typer

from cli_process import forked, ottla
from ottla.cli import app, main
from ottla.sim.scenarios.files import files

TIMEOUT = ("--set", "election_timeout_ms=500")
TOO_LONG = "x" * 300
NUMBERS = [each.stem.split("_")[0] for each in files()]
LISTED = f"there are {' '.join(NUMBERS)}"
FAR = "c-1:2000000 c-2:1600000 c-3:2000000"


def refused(*arguments):
    """The one line, after the checks that hold for every refusal."""
    done = forked(*arguments)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("ottla: ")
    return line


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["upp"], "No such command 'upp'"),
        (["up", "--prot", "1"], "--port"),
        (["up", "--nodes", "0"], "--nodes"),
        (["up", "--nodes", "eight"], "--nodes"),
        (["up", "--profile", "kafkaesque"], "there are: reference"),
        (["up", "--port", "65535"], "node 3 would need port 65537"),
        (["up", "--topic", "orders:x:1"], "is not NAME:PARTITIONS:RF, such as orders:3:3"),
        (["up", "--topic", "orders:0:1"], "is not NAME:PARTITIONS:RF"),
        (["up", "--topic", "a b:1:1"], "contains one or more characters other than"),
        (["up", "--topic", f"orders:{'9' * 5000}"], "is not NAME:PARTITIONS:RF"),
        (["up", "--topic", "orders:1:4"], "lower it, or raise --nodes"),
        (["up", "--topic", "a:1:1", "--topic", "a:2:1"], "'a' is named twice"),
        (["up", "--data-dir", ""], "'--data-dir': is empty"),
        (["up", "--data-dir", TOO_LONG], "'--data-dir': File name too long; name another folder"),
        (["up", "--data-dir", "\udcff"], "'\\udcff' is not UTF-8 text; write it in UTF-8"),
        (["demo", "--out", "caf\udce9"], "'caf\\udce9' is not UTF-8 text"),
        (["demo", "--out", TOO_LONG], "'--out': File name too long"),
        (["up", "--host", "\udcff"], "'\\udcff' is not UTF-8 text"),
        (["sim", "explain", "7", "--out", "caf\udce9.html"], "'caf\\udce9.html' is not UTF-8 text"),
        (["study", "run", "acks", "--out", "\udcff"], "'\\udcff' is not UTF-8 text"),
        (["sim", "replay", "a\nb\x1b[31m"], "'a\\nb\\x1b[31m' is not a seed"),
        (["sim", "run", "--seed", "7", "--config", "a\nb"], "--config a\\nb: No such file"),
        (["sim", "run", "--seed", "7", "--config", ""], "'--config': is empty; name a file"),
        (["sim", "run", "--seed", "7", "--config", "/"], "--config /: Is a directory; name a TOML"),
        (["sim", "replay", "/"], "/: is a folder; name a seed, or a file with a tape"),
        (["sim", "replay", ""], "the argument is empty; name a seed, or a file with a tape"),
        (["sim", "sweep", "--out", ""], "'--out': is empty; name a folder"),
        (["sim", "run", "--seed", "7", "--tape", "/dev/null/x"], "/dev/null is a file, not a"),
        (["sim", "show", "7", "--last", "x"], "'x' is not a whole number"),
        (["sim", "explain", "seed"], "'seed' is not a seed"),
        (["sim", "run", "--seed", f"0x{'f' * 6000}"], "is not a seed; seeds have at most 128 bits"),
        (["sim", "run", "--seed", "7", "--set", f"records=0x{'f' * 6000}"], "0 to 1000000 are"),
        (
            ["sim", "replay", "no.tape"],
            "is not a seed; write a number, or 0x and digits; nor",
        ),
        (["sim", "explain", "s99"], f"no such scenario: s99; {LISTED}"),
        (["sim", "explain", "sim-S00", "--act", "2"], f"no such scenario: sim-S00; {LISTED}"),
        (["sim", "explain", "s07_b_c_a"], f"no such scenario: s07_b_c_a; {LISTED}"),
        (["sim", "replay", "s99"], f"no such scenario: s99; {LISTED}"),
        (["sim", "why", "s07"], "s07 is a scenario; to see it, run ottla sim explain s07"),
        (["sim", "explain", "7", "--out", "no/such.html"], "there is no folder no"),
        (["sim", "explain", "s07", "--partition", "9"], "the run has no such partition"),
        (["sim", "why", "7", "--out", "/"], "/: is a folder; name a file"),
        (["sim", "coverage", "--out", "no/such.html"], "there is no folder no"),
        (["sim", "mutants", "--page", "no/such.md"], "there is no folder no"),
        (["sim", "run", "--seed", "7", "--tape", "no/such.tape"], "there is no folder no"),
        (["sim", "shrink", "7", "--out", "no/such.tape"], "there is no folder no"),
        (["sim", "shrink", "7", "--out", TOO_LONG], "File name too long; name a"),
        (["sim", "explain", "7", "--out", TOO_LONG], "File name too long; name a"),
        (["sim", "replay", "/dev/zero"], "/dev/zero: not a tape: it is larger than 64 MiB"),
        (["sim", "replay", TOO_LONG], "File name too long; name a"),
        (["sim", "shrink", "7", "--out", "/proc/small.tape"], "/proc/small.tape: "),
        (["sim", "run", "--seed", "7", "--set", "nods=3"], "no such setting: nods; did you mean"),
        (["sim", "shrink", "7", "--seconds", "nan"], "--seconds nan: is not a number"),
        (["sim", "run", "--seed", "7", "--failure", ""], "--failure '': there is no such failure;"),
        (["sim", "explain", "7", "--failure", ""], "--failure '': there is no such failure; there"),
        (["sim", "run", "--seed", "7", "--failure", "x" * 10_000], "xxx...: there is no such"),
        (
            ["up", *["--without-node", "1"] * 2, "--data-dir", "no-such-folder"],
            "--without-node names node 1 twice; name each node once",
        ),
        (["up", "--without-node", "1"], "--without-node leaves out folders of a --data-dir; name"),
        (
            ["up", "--host", "a:1"],
            "--host is 'a:1'; leave the port out, it is a setting of its own",
        ),
        (["up", "--host", "nosuch.invalid"], "--host is 'nosuch.invalid'; "),
        (["up", "--host", "192.0.2.1"], "--host is '192.0.2.1'; 192.0.2.1:9092: Cannot assign"),
        (["sim", "meta", "--python", "/bin/false"], "/bin/false: ended with status 1"),
        (
            ["sim", "experiment", "speed"],
            "no such experiment: speed; experiments are studies now, and there are acks, clean",
        ),
        (
            ["sim", "experiment", "acks"],
            "ottla: sim experiment acks is now a study: ottla study run acks",
        ),
        (
            ["sim", "experiment", "idempotence", "--seeds", "3"],
            "ottla: sim experiment idempotence is now a study: ottla study run idempotence",
        ),
        (
            ["sim", "experiment", "pipelining", "--out", "no/such.html"],
            "ottla: sim experiment pipelining is now a study: ottla study run pipelining",
        ),
        (["sim", "explain", "/dev/null", "--set", "nodes=3"], "a tape has its own settings"),
        (["sim", "explain", "7", "--set", "nodes"], "write NAME=VALUE"),
        (
            ["sim", "run", "--seed", "7", "--set", "faults=kil"],
            "no such fault: kil; did you mean kill?",
        ),
        (["sim", "sweep", "--set", "faults=kill,stop"], "no such fault: 'kill,stop'"),
        (["sim", "coverage", "no-such-folder"], "holds no sweep: No such file or directory"),
        (
            ["sim", "run", "--seed", "7", "--set", "min_insync=3", "--set", "nodes=1"],
            "min_insync is 3, but replicas is 1: nothing would ever be acknowledged",
        ),
        (
            ["sim", "run", "--seed", "1", "--set", "nodes=1", "--set", "faults=kill one-link"],
            "nodes is 1, but one-link needs 2: set more, or leave that fault out",
        ),
        (
            ["sim", "sweep", "--set", "nodes=3", "--set", "faults=ring"],
            "nodes is 3, but ring needs 4: set more, or leave that fault out",
        ),
        (
            ["sim", "run", "--seed", "7", "--set", "faults= "],
            "faults is blank; name some, or leave",
        ),
        (["sim", "sweep", "--set", "idempotent=yes"], "idempotent=yes: true or false is expected"),
        (["sim", "sweep", "--set", "nodes=three"], "--set nodes=three: a whole number is expected"),
        (
            ["sim", "run", "--seed", "7", "--config", "/bin/sh"],
            "/bin/sh: not TOML: it is not UTF-8 text",
        ),
        (
            ["sim", "run", "--seed", "7", "--set", "nodes=3", "--set", "replicas=5"],
            "replicas is 5, but there are 3 nodes",
        ),
        (
            ["sim", "run", "--seed", "7", "--set", "replicas=9"],
            "replicas is 9; 1 to 7 are possible",
        ),
        (["sim", "run", "--seed", "7", "--set", "nodes=0"], "nodes is 0; 1 to 7 are possible"),
        (["sim", "explain", "7", "--act", "2"], "7 is no scenario"),
        (["sim", "coverage", "/dev/null"], "/dev/null holds no sweep"),
        (["sim", "coverage", "/dev/null", "--set", "nodes=3"], "a sweep has its own settings"),
        (
            ["sim", "run", "--seed", "7", "--whole", "--set", "client_rtt_us=2000000"],
            "request_timeout_ms is 1500, but a node is 2000 ms away",
        ),
        (
            ["sim", "explain", "7", "--whole", "--set", "nodes=3", "--set", f"links={FAR}"],
            "request_timeout_ms is 1500, but a node is 2000 ms away",
        ),
        (
            ["sim", "explain", "1", "--whole", "--set", "rtt_us=2000000"],
            "of nodes 1, 2, 3 is 2000 ms apart, there and back: no leader could stay; with --whole",
        ),
        (
            ["sim", "run", "--seed", "7", *TIMEOUT, "--set", "rtt_us=500000"],
            "election_timeout_ms is 500, but the nearest majority of nodes 1, 2, 3 is 500 ms",
        ),
        (
            ["sim", "run", "--seed", "1", "--whole", "--set", "faults=kill"],
            "faults: with --whole nothing is drawn; name a --failure",
        ),
        (
            ["sim", "explain", "1", "--whole", "--set", "fault_every_ms=100"],
            "fault_every_ms: with --whole nothing is drawn; name a --failure",
        ),
        (
            [
                "sim",
                "run",
                "--seed",
                "0",
                "--failure",
                "the leader is killed",
                "--set",
                "load_ms=6999",
            ],
            "up to 2 s and 7 s after the start: load_ms is 6999; 7000 at least",
        ),
        (["sim", "run", "--seed", "1", "--set", "flush=off"], "with flush=off the broker promises"),
        (["sim", "sweep", "--set", "flush=off"], "with --whole its losses are counted, and"),
        (["sim", "coverage", "/dev/null", "--seeds", "5"], "a sweep has its own seeds"),
        (["sim", "coverage", "/dev/null", "--first", "0"], "a sweep has its own seeds"),
        (["sim", "explain", "s07", "--act", "9"], "s07_a_c_b has 2 acts"),
        (["sim", "explain", "s07", "--mutant", "M99"], "no such mutant: M99"),
        (["sim", "explain", "s07", "--mutant", "sim-M99"], "no such mutant: sim-M99; there are"),
        (["sim", "mutants", "sim-M99"], "no such mutant: sim-M99; there are M01, M02"),
        (["sim", "explain", "s07", "--set", "nodes=5"], "a scenario has its own settings"),
        (["demo", "--acks", "2"], "--acks"),
        (["demo", "--records", "1"], "--records"),
        (["demo", "--records", "9" * 400], "--records"),
        (["demo", "--seed", "99999999999999999999"], "--seed"),
        (["demo", "--seconds", "nan"], "--seconds"),
        (["demo", "--seed", "-1"], "--seed"),
        (["demo", "--out", ""], "'--out': is empty"),
        (
            ["demo", "--out", "/dev/null/report"],
            "'--out': /dev/null is a file, not a folder; name another",
        ),
    ],
)
def test_a_wrong_argument_is_one_line(arguments, told):
    assert told in refused(*arguments)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ("nodes = 9", "its settings are not this Ottla's: nodes is 9"),
        ('faults = "kil"', "no such fault: kil"),
    ],
)
def test_a_sweep_of_another_ottla_cannot_be_covered(tmp_path, settings, told):
    plan = {"first": 0, "seeds": 1, "settings": settings, "code": "", "commit": ""}
    (tmp_path / "sweep.json").write_text(json.dumps(plan))
    assert told in refused("sim", "cover", tmp_path)


def test_a_port_in_use_is_named():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = refused("up", "--nodes", "1", "--port", port)
    assert f"port {port} is in use" in line
    assert "--port" in line


def test_a_data_folder_that_is_a_file(tmp_path):
    path = tmp_path / "file"
    path.write_text("")
    assert "is a file; name a folder" in refused("up", "--data-dir", path)


@pytest.mark.slow
def test_help_and_version_are_no_errors():
    for arguments in (["--help"], ["up", "--help"], ["demo", "--help"], ["--version"]):
        done = ottla(*arguments)
        assert done.returncode == 0
        assert done.stdout
        assert done.stderr == ""
    assert "--no-auto-create" in ottla("up", "--help").stdout


@pytest.mark.slow
def test_without_a_command_there_is_help():
    done = ottla()
    assert "Commands:" in done.stdout
    assert done.stderr == ""


def options(command, path=()):
    """Each option and argument of each command, with the words that call the command."""
    for name, each in getattr(command, "commands", {}).items():
        yield from options(each, (*path, name))
    if not hasattr(command, "commands"):
        yield from ((path, each) for each in command.params)


def test_each_name_of_a_file_or_folder_is_looked_at_in_one_place():
    """An option that takes a path by itself would take "" for this folder."""
    found = [(path, each) for path, each in options(typer.main.get_command(app))]
    assert len(found) > 50
    assert [(path, each.name) for path, each in found if each.type.name == "path"] == []
    looked_at = [each.name for _, each in found if each.type.name in {"file", "folder"}]
    assert len(looked_at) >= 15


@pytest.mark.parametrize("word", ["caf\udce9", "a\0b"])
@pytest.mark.parametrize(
    "command", [["sim", "sweep", "--out"], ["study", "run"], ["up", "--topic"]]
)
def test_a_word_that_is_no_text_is_refused_before_anything_is_made(
    command, word, monkeypatch, capsys, tmp_path
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["ottla", *command, word])
    with pytest.raises(SystemExit) as ended:
        main()
    out, err = capsys.readouterr()
    assert (ended.value.code, out, len(err.splitlines())) == (2, "", 1)
    assert err.startswith(f"ottla: {word!r} ")
    assert not list(tmp_path.iterdir())
