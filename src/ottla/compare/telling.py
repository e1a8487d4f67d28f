"""A comparison as text: what each broker answered, where they differ, and the bytes.

The bytes are a dump of 16 a line, in which a mark below shows the first wrong field. Equal requests
and answers of more than `MOST_BYTES` are cut.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ottla.compare.case import Act, Case, Outcome, Raw, Request, Step
from ottla.compare.judging import OUTCOME, Difference
from ottla.compare.matching import value_told
from ottla.compare.requests import version_of
from ottla.compare.running import Comparison, Drawn, Result
from ottla.compare.transcript import Reply, Transcript

BYTES_A_LINE = 16
MOST_BYTES = 512
"""Bytes of a request or an answer that a dump shows, around the place in question."""


def result_lines(result: Result) -> Iterator[str]:
    """A result; if the two differ, with the first difference of each step in bytes."""
    case = result.case
    if result.left_out:
        yield f"left out  {case.name}: {result.left_out}"
        return
    assert result.target is not None
    assert result.other is not None
    answers = summary(result.target)
    if not result.differences:
        yield f"{result.word:<9} {case.name}: {answers}"
    else:
        yield f"DIFFERS   {case.name}: {case.title}"
        yield f"          {result.target.broker}: {answers}"
        yield f"          {result.other.broker}: {summary(result.other)}"
    for step in case.steps:
        mine = [each for each in result.differences if each.step == step.number]
        if mine:
            yield from _step_lines(step, mine, result.target, result.other)
    for each, why in result.explained:
        yield f"          explained: step {each.step} {each.field}: {why.reason} ({why.source})"


def summary(played: Transcript) -> str:
    """What a broker answered, in a few words for each step."""
    return ", ".join(brief(each) for each in played.replies)


def brief(reply: Reply) -> str:
    """An answer in a few words: its error codes, or the number of its fields."""
    if reply.outcome is not Outcome.ANSWERED:
        return str(reply.outcome.value)
    codes = [each.value for path, each in reply.fields.items() if path.endswith("error_code")]
    told = list(dict.fromkeys(value_told(each) for each in codes))
    return "/".join(told) if told else f"{len(reply.fields)} fields"


def step_told(step: Step, versions: Mapping[int, tuple[int, int]]) -> str:
    """A step in a few words: `step 2, produce 9`."""
    ask = step.ask
    if isinstance(ask, Request):
        return f"step {step.number}, {ask.api} {version_of(ask, versions)}"
    if isinstance(ask, Raw):
        return f"step {step.number}, {len(ask.data)} bytes"
    if isinstance(ask, Act):
        return f"step {step.number}, {ask.told()}"
    return f"step {step.number}, a wait of {ask.ms} ms"


def _step_lines(
    step: Step, differences: Sequence[Difference], target: Transcript, other: Transcript
) -> Iterator[str]:
    yield f"  {step_told(step, target.versions)}"
    for each in differences:
        place = f" at byte {each.start}" if each.start >= 0 else ""
        expected = f", the case says {each.expected}" if each.expected else ""
        yield f"    {each.field}{place}: {each.target}; {other.broker}: {each.other}{expected}"
    reply = target.reply(step.number)
    if reply is not None:
        first = min((each for each in differences if each.start >= 0), default=None, key=_start)
        yield from _bytes("request", reply.request, None)
        if reply.response is not None:
            yield from _bytes("answer", reply.response, first)


def _start(difference: Difference) -> int:
    return difference.start


def _bytes(what: str, data: bytes, wrong: Difference | None) -> Iterator[str]:
    yield f"    {what}, {len(data)} bytes:"
    for line in dump(data, wrong):
        yield f"      {line}"


def dump(data: bytes, wrong: Difference | None = None) -> Iterator[str]:
    """Bytes as lines of `offset  hexadecimal  text`, with a mark below the field that is wrong."""
    start, end = (wrong.start, wrong.end) if wrong is not None else (-1, -1)
    first = max(0, start - MOST_BYTES // 2) // BYTES_A_LINE * BYTES_A_LINE
    if first:
        yield f"... {first} bytes before"
    last = min(len(data), first + MOST_BYTES)
    for at in range(first, last, BYTES_A_LINE):
        line = data[at : min(at + BYTES_A_LINE, last)]
        text = "".join(chr(each) if 32 <= each < 127 else "." for each in line)
        yield f"{at:04x}  {line.hex(' '):<{3 * BYTES_A_LINE - 1}}  {text}"
        marked = range(max(at, start), min(at + BYTES_A_LINE, end))
        if wrong is not None and start >= 0 and marked:
            blank = " " * (6 + 3 * (marked[0] - at))
            yield f"{blank}{'^^ ' * len(marked)}{wrong.field}".rstrip()
    if last < len(data):
        yield f"... {len(data) - last} more"


def closing_lines(comparison: Comparison) -> Iterator[str]:
    """The end: explanations that are stale, the counts, and that it came too early, if so."""
    for each in comparison.stale():
        yield (
            f"STALE     {each.told()} is listed as explained, and no longer differs: "
            "take it out of the list"
        )
    names = f"{comparison.target.name} against {comparison.other.name}"
    early = "; it ended too early" if comparison.ended else ""
    if comparison.drawn is not None:
        yield f"{names}: {_drawn(comparison, comparison.drawn)}{early}"
        return
    counts = comparison.counts()
    told = [f"{counts['alike']} alike"]
    for word, count in counts.items():
        if word != "alike" and count:
            told.append(f"{count} differ" if word == "differs" and count > 1 else f"{count} {word}")
    yield f"{names}: {_cases(len(comparison.results))}, {', '.join(told)}{early}"


def _drawn(comparison: Comparison, drawn: Drawn) -> str:
    """What came of random requests."""
    told = (
        f"{_many(drawn.steps, 'step')} of seed {drawn.seed} in {_many(drawn.sequences, 'sequence')}"
    )
    kinds = len(comparison.results)
    if kinds:
        kinds_told = "1 kind of difference" if kinds == 1 else f"{kinds} kinds of differences"
        told += f", {kinds_told} in {_many(drawn.differing, 'sequence')}"
    else:
        told += ", no difference"
    if drawn.explained:
        told += f"; {_many(drawn.explained, 'difference')} as listed, with the reason"
    if drawn.left_out:
        told += f"; {_many(drawn.left_out, 'sequence')} left out: {drawn.why}"
    return told


def verdict(comparison: Comparison) -> str:
    """The result in one sentence, and what ended it too early, if so."""
    early = f" Ended too early: {comparison.ended}." if comparison.ended else ""
    if comparison.drawn is not None:
        names = f"{comparison.target.name} against {comparison.other.name}"
        return f"{names}: {_drawn(comparison, comparison.drawn)}.{early}"
    counts, stale = comparison.counts(), len(comparison.stale())
    target, other = comparison.target.name, comparison.other.name
    played = len(comparison.results) - counts["left out"]
    told = f"as {other} does in {counts['alike']}"
    if counts["differs"]:
        told = f"otherwise than {other} in {counts['differs']}"
    said = f"{target} answers {told} of {_cases(played)}"
    if counts["explained"]:
        said += f"; in {counts['explained']} it differs only as listed, with the reason"
    if stale:
        said += f"; differences listed, but gone: {stale}"
    if counts["left out"]:
        said += f"; {counts['left out']} more left out"
    return f"{said}.{early}"


def _cases(count: int) -> str:
    return _many(count, "case")


def _many(count: int, thing: str) -> str:
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"


def listed(case: Case) -> str:
    """A case in one line."""
    return f"{case.name}: {case.title}"


def differing(result: Result) -> str:
    """The first difference of a result in one line, for a table."""
    if not result.differences:
        return ""
    first = result.differences[0]
    what = "" if first.field == OUTCOME else f"{first.field.rpartition('.')[2]} "
    return f"step {first.step}: {what}{first.target}, not {first.expected or first.other}"
