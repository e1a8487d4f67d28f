"""Scenarios as golden files: `testdata/*.txt`, in the language of `raft_transcript`.

`OTTLA_REWRITE=1 pytest tests/raft/test_transcripts.py` writes them anew; review the difference as
prose.
"""

import os
from pathlib import Path

import pytest

from raft_transcript import Transcript

FILES = sorted((Path(__file__).parent / "testdata").glob("*.txt"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_plays_as_written(path: Path) -> None:
    written = path.read_text()
    played = Transcript().play(written)
    if os.environ.get("OTTLA_REWRITE"):
        path.write_text(played)
    else:
        assert played == written


def test_there_are_scenarios() -> None:
    assert len(FILES) >= 14
