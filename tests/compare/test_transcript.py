"""What a transcript makes of ids that its broker gave."""

from compare_kit import played, written

TEXT = """
[[steps]]
name = "id"
init_producer_id = {}
[[steps]]
produce = { producer = "$id.producer_id", sequence = 0 }
[[steps]]
produce = { producer = 1000000007, sequence = 0 }
[[steps]]
fetch = {}
"""


def test_an_id_that_a_broker_gave_is_called_by_the_step_that_gave_it(tmp_path):
    """Two brokers give different ids; a record of such a producer was told to differ."""
    transcript = played(written(tmp_path, TEXT))
    *_, fetched = transcript.replies
    fields = transcript.called(fetched)
    ids = [each.value for path, each in fields.items() if path.endswith(".producer_id")]
    assert ids == ["the id of step 1", 1_000_000_007]
    assert {path for path in fields if fields[path] != fetched.fields[path]} == {
        "responses[0].partitions[0].records[0].producer_id"
    }
