"""Transcripts in testdata/ are played again and must give the same output.

OTTLA_REWRITE=1 writes the output anew; then read the difference before committing it.
"""

import os
from pathlib import Path

import pytest

from idempotency_transcript import play

TRANSCRIPTS = sorted((Path(__file__).parent / "testdata").glob("*.txt"))


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_transcript(path):
    text = path.read_text(encoding="utf-8")
    played = play(text)
    if os.environ.get("OTTLA_REWRITE"):
        path.write_text(played, encoding="utf-8")
    else:
        assert played == text


def test_there_are_transcripts():
    assert len(TRANSCRIPTS) >= 12
