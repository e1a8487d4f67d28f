"""`ottla compare` as a user types it: what it prints, where it writes, how it ends.

Status 0 is alike, 1 is different, 2 is one line that says why nothing could be compared.
No test needs a broker of others: Kafka is its recording.
"""

import json
import re
import signal
import socket
import subprocess
import sys

import pytest

from cli_groups import begun, end
from cli_process import forked, ottla
from compare_kit import HEAD, RECORDED
from docs_programs import blocks
from ottla.commands import compare_fuzz
from ottla.commands.compare_fuzz import Draw
from ottla.commands.usage import UsageError
from ottla.compare.brokers import ProfileBroker
from ottla.compare.finding import CASES
from ottla.compare.fuzz import hunt
from ottla.compare.fuzz.hunt import Hunt
from ottla.compare.fuzz.kinds import Kind
from ottla.compare.running import Comparison
from tidy.source import repository

PAGE = "how-to/compare-with-kafka.md"
EVERY = sum(1 for _ in CASES.rglob("*.toml"))
GAP = ("--cases", "a-gap-is-refused")
MINE = """
[[steps]]
produce = { producer = 7, epoch = 1, sequence = 0 }
[[steps]]
produce = { producer = 7, epoch = 0, sequence = 1 }
expect = { error_code = "INVALID_PRODUCER_EPOCH" }
"""


@pytest.fixture
def mine(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(HEAD + MINE, encoding="utf-8")
    return path


def test_two_that_are_alike_end_with_status_0():
    done = forked("compare", "--target", "reference", "--against", "reference", *GAP)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "alike     idempotence/a-gap-is-refused: NONE, OUT_OF_ORDER_SEQUENCE_NUMBER, NONE",
        "reference against reference: 1 case, 1 alike",
    ]


def test_two_profiles_that_differ_end_with_status_1_and_all_files(tmp_path, mine):
    files = {each: tmp_path / f"out.{each}" for each in ("html", "json", "junit")}
    options = [word for name, path in files.items() for word in (f"--{name}", path)]
    target = ("--target", "redpanda-5157", "--against", "reference")
    done = forked("compare", *target, "--cases", mine, *options)
    assert done.returncode == 1, done.stderr
    assert "INVALID_PRODUCER_EPOCH" in done.stdout
    assert "^^ ^^ responses[0].partition_responses[0].error_code" in done.stdout
    assert json.loads(files["json"].read_text(encoding="utf-8"))["status"] == 1
    assert "<failure" in files["junit"].read_text(encoding="utf-8")
    assert "1 case differs" in files["html"].read_text(encoding="utf-8")


def test_a_recording_is_compared_without_a_broker():
    done = forked("compare", "--replay", RECORDED, "--against", "reference", *GAP)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].endswith("against reference: 1 case, 1 alike")


@pytest.mark.slow
def test_over_tcp_an_answer_can_be_recorded_and_replayed(tmp_path):
    done = ottla(
        *("compare", "--target", "reference", "--against", "reference", "--wire", *GAP),
        *("--record", tmp_path / "kept"),
    )
    assert done.returncode == 0, done.stderr
    assert "reference over TCP against reference over TCP: 1 case, 1 alike" in done.stdout
    again = ottla("compare", "--replay", tmp_path / "kept", "--against", "reference", *GAP)
    assert again.returncode == 0, again.stderr


def test_the_list_names_each_case_with_its_rule():
    done = forked("compare", "--list")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert len(lines) >= 120
    assert (
        "idempotence/a-gap-is-refused: A batch that leaves sequence numbers out is refused, and "
        "nothing is stored"
    ) in lines


def test_the_files_on_the_page_are_what_they_are_said_to_be(tmp_path):
    a_case, nodes, a_list = (each.text for each in blocks(PAGE) if each.language == "toml")
    (tmp_path / "rule.toml").write_text(a_case, encoding="utf-8")
    (tmp_path / "nodes.toml").write_text(nodes, encoding="utf-8")
    (tmp_path / "list.toml").write_text(a_list, encoding="utf-8")
    done = forked(
        *("compare", "--replay", RECORDED, "--against", "reference", "--cases", "a-session-is-*"),
        *("--explained", tmp_path / "list.toml"),
    )
    assert done.returncode == 0, done.stderr
    assert "our broker has no fetch sessions (our list of wishes)" in done.stdout
    done = forked(
        *("compare", "--target", "reference", "--against", "reference"),
        *("--cases", tmp_path / "rule.toml", "--cases", tmp_path / "nodes.toml"),
    )
    assert done.returncode == 0, done.stdout
    assert "2 cases, 2 alike" in done.stdout


def test_the_page_names_every_option_that_it_shows():
    told = forked("compare", "--help").stdout
    shown = "\n".join(each.text for each in blocks(PAGE) if each.language == "sh")
    options = set(re.findall(r"--[a-z]+", shown))
    assert {"--target", "--against", "--html", "--cases"} <= options
    assert [each for each in options if each not in told] == []


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "--target or --replay is wanted, and only one of them"),
        (["--target", "reference", "--replay", "x"], "--target or --replay is wanted, and only"),
        (["--target", "kafak"], "--target: there is no profile 'kafak'; there are: reference"),
        (["--target", "kafak"], "or an address such as localhost:9092"),
        (["--target", "reference", "--against", "x"], "--against: there is no profile 'x'"),
        (["--target", "reference", "--cases", "x/*"], "--cases 'x/*': no case and no file matches"),
        (["--replay", "not/there"], "there is no such recording; make it with --record"),
        (["--target", "reference", "--html", "no/such/folder/x.html"], "no/such/folder"),
        (["--target", "reference", "--json", "no/such/folder/x"], "no/such/folder; make it"),
        (["--target", "reference", "--junit", "no/such/folder/x"], "no/such/folder; make it"),
        (["--target", "reference", "--explained", "no.toml"], "no.toml: No such file"),
        (["--target", "reference", "--jsno", "x"], "No such option: --jsno"),
        (["--target", "127.0.0.1:99999"], "port is 99999; 0 to 65535 are possible"),
    ],
)
def test_a_mistake_is_one_line_and_status_2(arguments, told):
    done = forked("compare", *arguments)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("ottla: ")
    assert told in line
    assert done.stdout == ""


def test_nothing_compared_is_status_2(tmp_path):
    """It was status 0 and a page that said *alike*."""
    path = tmp_path / "rule.toml"
    path.write_text(HEAD + "[[steps]]\nproduce = { version = 13 }\n", encoding="utf-8")
    done = forked("compare", "--target", "reference", "--against", "reference", "--cases", path)
    assert done.returncode == 2
    assert done.stderr == "ottla: every case was left out, so nothing was compared\n"
    assert "left out  rule: reference serves produce 0 to 12, not 13" in done.stdout


def test_a_title_of_the_list_is_one_line(tmp_path):
    path = tmp_path / "rule.toml"
    head = HEAD.replace('"A rule"', r'"a\nb\u001b"')
    path.write_text(head + "[[steps]]\nproduce = {}\n", encoding="utf-8")
    done = forked("compare", "--list", "--cases", path)
    assert done.stdout == "rule: a\\nb\\x1b\n"


@pytest.mark.slow
def test_an_interrupt_ends_it_with_one_line():
    """It said nothing."""
    process = begun("compare", "--target", "reference")
    try:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("alike ")
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    finally:
        end(process)
    assert process.returncode == 130
    *before, last = said.splitlines()
    assert all(re.match(rf"\d+ of {EVERY} cases, next ", each) for each in before), said
    assert re.fullmatch(
        rf"ottla: interrupted; \d+ of {EVERY} cases are done, nothing is kept", last
    )


def test_a_broker_that_is_not_there_is_told_in_one_line():
    done = forked("compare", "--target", f"127.0.0.1:{free_port()}", *GAP)
    assert done.returncode == 2
    assert "Connect call failed" in done.stderr or "refused" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def make_kafka(folder):
    """What `make kafka` runs, with nothing but the commands that lie in a folder."""
    return subprocess.run(
        [sys.executable, repository() / "tests/lib/compare_kafka.py", "--port", str(free_port())],
        cwd=folder,
        env={"PATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_kafka_without_java_is_told_in_one_line(tmp_path):
    """It ended in a traceback, and so did a Maven that failed."""
    done = make_kafka(tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "ottla: Kafka needs Java 17 and Maven; missing: java and mvn\n"
    for command in ("java", "mvn"):
        (tmp_path / command).write_text("#!/bin/sh\nexit 3\n", encoding="utf-8")
        (tmp_path / command).chmod(0o755)
    done = make_kafka(tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        "ottla: Maven fetches Kafka 4.3.1, once",
        "ottla: mvn ended with status 3, see above",
    ]


def test_a_file_that_is_no_case_is_told_in_one_line(tmp_path):
    path = tmp_path / "bad.toml"
    path.write_text(HEAD + "[[steps]]\nproduce = { acsk = 1 }\n", encoding="utf-8")
    done = forked("compare", "--target", "reference", "--cases", path)
    assert done.returncode == 2
    assert done.stderr == (
        "ottla: bad.toml: steps[1].produce.acsk is no key here: there is no acsk; did you mean "
        "acks?\n"
    )


# ---- random requests


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory):
    """What a short fuzz of two profiles that differ printed, and the folder in which it was run."""
    folder = tmp_path_factory.mktemp("fuzzed")
    two = ("--target", "reference", "--against", "kafka-4.3")
    files = ("--json", folder / "out.json", "--junit", folder / "out.xml")
    done = forked("compare", *two, "--fuzz", 100, "--seed", 14, "--out", folder / "mine", *files)
    return done, folder


@pytest.mark.slow
def test_random_requests_to_two_profiles_find_where_they_differ(fuzzed):
    done, folder = fuzzed
    assert done.returncode == 1, done.stderr
    (case,) = (folder / "mine").iterdir()
    lines = done.stdout.splitlines()
    assert lines[0].startswith("DIFFERS   fuzz/")
    how = rf" *\d steps? shows? it: {re.escape(str(case))}; --fuzz \d+ finds it again"
    assert any(re.fullmatch(how, each) for each in lines)
    assert lines[-1].startswith("reference against kafka-4.3: 100 steps of seed 14 in ")
    assert json.loads((folder / "out.json").read_text(encoding="utf-8"))["drawn"]["seed"] == 14
    assert "<failure" in (folder / "out.xml").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_case_that_is_written_shows_the_difference_again(fuzzed):
    two = ("--target", "reference", "--against", "kafka-4.3")
    again = forked("compare", *two, "--cases", fuzzed[1] / "mine")
    assert again.returncode == 1, again.stdout
    assert "1 case, 0 alike, 1 differs" in again.stdout


def test_a_profile_against_itself_has_no_difference(tmp_path):
    two = ("--target", "reference", "--against", "reference")
    done = forked("compare", *two, "--fuzz", 30, "--out", tmp_path / "none")
    assert done.returncode == 0, done.stderr
    (line,) = done.stdout.splitlines()
    assert line.endswith("30 steps of seed 1 in 1 sequence, no difference")
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("place", ["a file", "/proc/none/cases"])
def test_a_folder_for_cases_is_tried_before_anything_is_drawn(tmp_path, place):
    """It was found out after the first difference was shrunk, which was lost."""
    (tmp_path / "a file").touch()
    two = ("--target", "reference", "--against", "reference")
    done = forked("compare", *two, "--fuzz", 10, "--out", tmp_path / place)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"ottla: --out {tmp_path / place}: ")
    assert line.endswith("; name another folder")


class Interrupted(Hunt):
    """A hunt that is interrupted after as many differences as `cases` says."""

    cases = 0

    def run(self):
        for each in super().run():
            found = len(self.comparison.results)
            if isinstance(each, Kind) and found == self.cases:
                raise KeyboardInterrupt
            yield each


@pytest.mark.slow
@pytest.mark.parametrize(("cases", "kept"), [(0, "nothing is kept"), (1, "{} has 1 case")])
def test_an_interrupted_fuzz_says_what_is_kept(tmp_path, monkeypatch, cases, kept):
    """It said that the folder has the cases before there was one."""
    monkeypatch.setattr(hunt, "Hunt", Interrupted)
    monkeypatch.setattr(Interrupted, "cases", cases)
    monkeypatch.setattr(hunt, "MOST_REPLAYS", 1)
    monkeypatch.setattr(hunt, "AT_ONCE", 1)
    comparison = Comparison(ProfileBroker("redpanda-5157"), ProfileBroker("reference"), "reference")
    with pytest.raises(KeyboardInterrupt) as interrupt:
        compare_fuzz.hunt(comparison, Draw(2000, 1, tmp_path / "out"))
    assert interrupt.value.__notes__[0].endswith(f"are done, {kept.format(tmp_path / 'out')}")
    assert len(list(tmp_path.glob("out/*"))) == cases


@pytest.mark.slow
def test_a_difference_is_printed_before_its_file_is_written(tmp_path, monkeypatch, capsys):
    """What could not be written was not told, either."""
    monkeypatch.setattr(hunt, "MOST_REPLAYS", 1)
    monkeypatch.setattr(hunt, "AT_ONCE", 1)
    (tmp_path / "out").touch()
    comparison = Comparison(ProfileBroker("redpanda-5157"), ProfileBroker("reference"), "reference")
    with pytest.raises(UsageError, match=r"--out .*name another folder"):
        compare_fuzz.hunt(comparison, Draw(2000, 1, tmp_path / "out"))
    assert capsys.readouterr().out.startswith("DIFFERS   fuzz/")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--fuzz", 9, "--cases", "*"], "--fuzz draws requests and asks them, so --cases has no"),
        (["--fuzz", 9, "--record", "x"], "--fuzz draws requests and asks them, so --record has no"),
        (["--seed", 9], "--seed is about what is drawn; add --fuzz N"),
        (["--out", "x"], "--out is about what is drawn; add --fuzz N"),
        (["--fuzz", 0], "--fuzz"),
        (["--html", "x", "--json", "x"], "--html and --json both name x; name two files"),
        (["--junit", "x", "--json", "./x"], "--json and --junit both name x; name two files"),
    ],
)
def test_options_that_do_not_fit_are_told_in_one_line(options, told):
    done = forked("compare", "--target", "reference", "--against", "reference", *options)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert told in line
