"""What is seen of a study where nobody watches a terminal."""

from awaiting import await_that
from ottla.study_cli.progress import Display


def test_a_line_comes_within_seconds(capsys):
    """The first came after half a minute, and a log of a short study had none."""
    said = []

    def told():
        said.append(capsys.readouterr().out)
        return "engine, " in "".join(said)

    with Display() as display:
        display.doing("engine")
        await_that(told, 10, "nothing is said")
