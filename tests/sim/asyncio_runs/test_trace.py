"""The trace: equal runs have equal digests, and what differs first is named."""

import asyncio
import json

from ottla.sim.asyncio_runs.policies import shuffled
from ottla.sim.asyncio_runs.run import run
from ottla.sim.asyncio_runs.steps import Row, first_difference


def _program(bend=None):
    async def worker(number):
        for turn in range(10):
            await asyncio.sleep(0.001 if (number, turn) != bend else 0.0011)

    async def main(_):
        await asyncio.gather(*map(worker, range(5)))

    return main


def test_equal_runs_have_equal_digests_whether_or_not_the_trace_is_kept():
    runs = [run(_program(), seed=4, policy=shuffled, keep_trace=keep) for keep in (False, True)]
    assert runs[0].digest == runs[1].digest
    assert (runs[0].rows, len(runs[1].rows)) == ([], runs[1].steps)
    assert runs[0].digest != run(_program(), seed=5, policy=shuffled).digest


def test_the_first_difference_of_two_runs_is_named():
    one, other = (run(_program(bend), keep_trace=True) for bend in (None, (2, 7)))
    assert one.digest != other.digest
    found = first_difference(one.rows, other.rows)
    assert found is not None
    assert found.left is not None
    assert one.rows[: found.place] == other.rows[: found.place]
    # The seven turns before were the same: a millisecond each, from 0.
    assert found.left.time == 8000
    assert "_set_result_unless_cancelled" in str(found)
    assert "row" in str(found)


def test_traces_may_come_from_other_processes():
    kept = run(_program(), keep_trace=True).rows
    sent = json.loads(json.dumps(kept))
    assert first_difference(kept, sent) is None
    sent[3][0] += 1
    found = first_difference(kept, sent)
    assert found is not None
    assert found.place == 3


def test_a_run_that_is_over_differs_from_one_that_goes_on():
    rows = [Row(0, 1, 0, "a"), Row(0, 2, 0, "b")]
    found = first_difference(rows[:1], rows)
    assert found == (1, None, rows[1])
    assert "the run is over" in str(found)


def test_bytes_that_arrive_are_part_of_the_digest():
    def program(text):
        async def main(_):
            async def swallow(reader, writer):
                await reader.read()
                writer.close()

            server = await asyncio.start_server(swallow, "host", 1)
            _, writer = await asyncio.open_connection("host", 1)
            writer.write(text)
            writer.close()
            await asyncio.sleep(1)
            server.close()

        return main

    assert run(program(b"one")).digest == run(program(b"one")).digest
    assert run(program(b"one")).digest != run(program(b"two")).digest
    assert run(program(b"one")).steps == run(program(b"two")).steps
