"""The pages about Spark: their programs run and their commands print what they say.

Apart from the other how-tos, because they need a JVM, and take as long as one takes to start.
"""

import pytest
from confluent_kafka import Producer

import cli_process
import docs_programs
from docs_programs import blocks, commands
from studies_spark import need_spark

pytestmark = pytest.mark.slow
SECONDS = 240


@pytest.fixture(autouse=True)
def needed():
    need_spark()


@pytest.mark.slow(seconds=40)
def test_the_program_that_reads_a_topic_runs(tmp_path):
    (program,) = (each for each in blocks("how-to/read-with-spark.md") if each.language == "python")
    (tmp_path / "program.py").write_text(program.text, encoding="utf-8")
    ran = docs_programs.run("python program.py", tmp_path, SECONDS)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "max(sequence)" in ran.stdout


@pytest.mark.nightly
def test_the_commands_that_audit_a_topic_print_what_the_page_says(tmp_path):
    told = [
        command
        for block in blocks("how-to/audit-a-topic.md")
        if block.language == "console"
        for command in commands(block)
    ]
    assert len(told) == 3
    with cli_process.running("--port", 0, "--topic", "orders:3:3") as up:
        address = up.ready.removeprefix("ready bootstrap=")
        producer = Producer({"bootstrap.servers": address, "enable.idempotence": True})
        for number in range(1000):
            producer.produce("orders", b"%d" % number, partition=number % 3)
        assert producer.flush(30) == 0
        for command in told:
            line = command.line.replace("127.0.0.1:9092", address)
            ran = docs_programs.run(line, tmp_path, SECONDS)
            assert ran.returncode == 0, ran.stderr
            assert ran.stdout.splitlines() == command.prints
