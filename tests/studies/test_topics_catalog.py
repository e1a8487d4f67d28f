"""The topics of a data folder are those that its nodes would make of the controller's log."""

import msgpack
import pytest

from ottla import Cluster
from ottla.broker.controller import controller
from ottla.broker.errors import RequestFailedError
from ottla.sim.studies.topics.asked import asked
from ottla.sim.studies.topics.reading import batch_ranges, rows
from studies_topics import batch, write


@pytest.mark.slow
def test_what_the_nodes_refuse_in_a_log_is_passed_over(tmp_path, monkeypatch):
    """A command of an older version, which the nodes pass over at each start, ended the reading."""
    with Cluster(nodes=1, data_dir=tmp_path) as running:
        with monkeypatch.context() as patched:
            patched.setattr(controller, "pack", lambda _: msgpack.packb({"type": "create_topic"}))
            with pytest.raises(RequestFailedError, match="INVALID_REQUEST"):
                running.create_topic("bad")
        running.create_topic("t")
        write(running, "t", [batch(0, 1, 0, 5)])
    wanted = asked({"topic": "t", "path": str(tmp_path)})
    assert sum(table.num_rows for each in batch_ranges(wanted) for table in rows(wanted, each)) == 5
