"""Files that must not load: each is refused in one line that names the place and what is wrong.

A message that leaves the reader to guess is a bug: each row has the words that must be in it.
The other tests here are about which files a glob finds.
"""

import re

import pytest

from compare_kit import HEAD, every_case, written
from ottla.compare.errors import CaseError
from ottla.compare.loading import load, load_cases

STEP = "[[steps]]\nproduce = {}\n"

REFUSED = {
    "no TOML": ("schema = \n", r"rule.toml: Invalid value \(at line 4, column 10\); see https"),
    "an unknown key": (
        "names = 3\n" + STEP,
        "names is no key here: there is no names; there are schema",
    ),
    "no steps": ("", r"steps is missing; a list of tables, \[\[steps\]\] is wanted"),
    "steps that are none": ("steps = []\n", "steps has 0 elements; 1 to 300"),
    "a step of nothing": (
        "[[steps]]\nname = 'x'\n",
        r"steps\[1\] has none of them; one of produce",
    ),
    "a step of two things": (
        "[[steps]]\nproduce = {}\nwait = 3\n",
        r"steps\[1\] has produce and wait; one of produce",
    ),
    "a misspelt key of a request": (
        "[[steps]]\nproduce = { produser = 7 }\n",
        r"steps\[1\].produce.produser is no key here: there is no produser; did you mean producer",
    ),
    "a key of a step that there is not": (
        STEP + "expects = {}\n",
        r"steps\[1\].expects is no key here: there is no expects; did you mean expect\?",
    ),
    "a text for a number": (
        '[[steps]]\nproduce = { producer = 7, sequence = "x" }\n',
        r'steps\[1\].produce.sequence is "x"; a whole number or a \$reference is wanted',
    ),
    "a truth for a number": (
        "[[steps]]\nproduce = { partition = true }\n",
        r"steps\[1\].produce.partition is true; a whole number is wanted",
    ),
    "a producer without a sequence": (
        "[[steps]]\nproduce = { producer = 7 }\n",
        r"steps\[1\].produce.sequence is missing; a whole number or a \$reference is wanted",
    ),
    "acks in other words": (
        '[[steps]]\nproduce = { acks = "most" }\n',
        r"""produce.acks is 'most'; a whole number or "all" is wanted""",
    ),
    "an unknown codec": (
        '[[steps]]\nproduce = { codec = "gzib" }\n',
        "produce.codec is gzib; did you mean gzip",
    ),
    "an unknown field of a header": (
        "[[steps]]\nproduce = { wrong = { csc = 1 } }\n",
        "produce.wrong.csc is no key here",
    ),
    "a number too large for its field": (
        "[[steps]]\nproduce = { wrong = { magic = 300 } }\n",
        "produce.wrong.magic is 300; -128 to 127 are possible",
    ),
    "a time in other words": (
        '[[steps]]\nproduce = { timestamp = "today" }\n',
        """produce.timestamp is 'today'; ms since 1970, or "now", "now""",
    ),
    "odd hexadecimal digits": (
        '[[steps]]\nraw = "abc"\n',
        'raw is "abc"; pairs of hexadecimal digits are wanted',
    ),
    "an unknown API": (
        '[[steps]]\nrequest = { api = "produse" }\n',
        "request.api is produse; did you mean produce",
    ),
    "an unknown field of a request": (
        '[[steps]]\nrequest = { api = "find_coordinator", fields = { kee = "x" } }\n',
        r"steps\[1\]: find_coordinator has no field kee; there are coordinator_keys, key",
    ),
    "a version that nobody knows": (
        "[[steps]]\nproduce = { version = 99 }\n",
        "produce.version is 99; of produce 3 to 13 are possible, or a request with a body",
    ),
    "a value that does not fit": (
        "[[steps]]\nfetch = { max_wait = 99999999999 }\n",
        r"steps\[1\]: ",
    ),
    "a topic of somebody else": (
        '[[steps]]\nproduce = { topic = "orders" }\n',
        r"steps\[1\] names the topic orders; topics and absent have t",
    ),
    "an unknown outcome": (
        STEP + 'expect = "close"\n',
        r"steps\[1\].expect is close; did you mean closed",
    ),
    "a field that the answer has not": (
        STEP + "expect = { bas_offset = 3 }\n",
        "expect.bas_offset is no field of the answer of produce 9: there is no bas_offset; did you",
    ),
    "a field of a later version": (
        "[[steps]]\nproduce = { version = 7 }\nexpect = { error_message = 'x' }\n",
        "expect.error_message is no field of the answer of produce 7",
    ),
    "a field of mere bytes": (
        "[[steps]]\nraw = 'ab'\nexpect = { error_code = 'NONE' }\n",
        "expect.error_code is a field; only an outcome can be expected here",
    ),
    "an unknown operator": (
        STEP + "expect = { base_offset = { above = 3 } }\n",
        "expect.base_offset has the keys above; one of exists, any_of",
    ),
    "an unknown error code": (
        STEP + "expect = { error_code = 'OUT_OF_ORDER' }\n",
        "expect.error_code is OUT_OF_ORDER; a name of Kafka's protocol guide is wanted",
    ),
    "an unknown type": (
        STEP + "expect = { base_offset = { type = 'numbre' } }\n",
        "base_offset.type is numbre; did you mean number",
    ),
    "a reference to nobody": (
        STEP + "expect = { base_offset = '$first.base_offset' }\n",
        r"steps\[1\] refers to \$first.base_offset; no earlier step has the name first",
    ),
    "a reference to a later step": (
        STEP + "expect = { base_offset = '$b.base_offset' }\n[[steps]]\nname = 'b'\nproduce = {}\n",
        r"no earlier step has the name b",
    ),
    "a name twice": (
        "[[steps]]\nname = 'a'\nproduce = {}\n[[steps]]\nname = 'a'\nproduce = {}\n",
        r"steps\[2\].name is a, as of an earlier step",
    ),
    "a wait without end": ("[[steps]]\nwait = 9999999\n", "wait is 9999999; 1 to 60000 ms"),
    "a wait in a pipeline": (
        STEP + "[[steps]]\nwait = 3\npipelined = true\n",
        "pipelined is true; a wait sends nothing",
    ),
    "an unknown API in requires": (
        "requires = { produse = 3 }\n" + STEP,
        "requires.produse is no API: there is no produse; did you mean produce",
    ),
    "a config that is no text": (
        "topics = { t = { configs = { a = 1 } } }\n" + STEP,
        "topics.t.configs.a is 1; a text is wanted",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_in_one_line(tmp_path, name):
    text, told = REFUSED[name]
    with pytest.raises(CaseError, match=told) as refused:
        written(tmp_path, text)
    assert str(refused.value).startswith("rule.toml: ")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (HEAD.replace("1", "2") + STEP, "schema is 2; 1 is the only one there is"),
        (HEAD.replace("schema = 1", "") + STEP, "schema is missing; a whole number is wanted"),
        (HEAD.replace('"A rule"', '" "') + STEP, "title is empty; say what the rule is"),
        (HEAD.replace('["K-CODES"]', "[]") + STEP, "source is empty; say what the rule is"),
        (HEAD.replace('["K-CODES"]', "[3]") + STEP, r"source\[0\] is 3; a text is wanted"),
    ],
)
def test_a_head_that_is_none_is_refused(tmp_path, text, told):
    path = tmp_path / "rule.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(CaseError, match=re.escape("rule.toml: ") + told):
        load(path)


def test_what_is_no_text_and_what_is_not_there_is_refused(tmp_path):
    (tmp_path / "a.toml").write_bytes(b"title = '\xff'\n")
    with pytest.raises(CaseError, match="byte 9 is not UTF-8"):
        load(tmp_path / "a.toml")
    with pytest.raises(CaseError, match=r"b\.toml: No such file"):
        load(tmp_path / "b.toml")
    with pytest.raises(CaseError, match="no case and no file matches it; see --list"):
        load_cases(["no/such/*"])


def test_a_file_of_ones_own_is_found_by_a_glob_and_by_its_folder(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "a-rule.toml").write_text(HEAD + STEP, encoding="utf-8")
    assert [each.name for each in load_cases([f"{tmp_path}/mine/*.toml"])] == ["a-rule"]
    assert [each.name for each in load_cases([str(tmp_path)])] == ["mine/a-rule"]


def test_a_case_is_found_by_its_name_and_by_its_folder():
    assert [each.name for each in load_cases(["a-gap-is-refused"])] == [
        "idempotence/a-gap-is-refused"
    ]
    folders = {each.name.partition("/")[0] for each in load_cases(["acks/*", "produce/*"])}
    assert folders == {"acks", "produce"}


def test_no_case_says_the_same_as_another():
    titles = [each.title for each in every_case()]
    assert len(titles) == len(set(titles)) >= 120
    steps = [repr((each.steps, each.topics)) for each in every_case()]
    assert len(steps) == len(set(steps))


@pytest.mark.parametrize(
    "text",
    [
        "requires = { nodes = 3 }\n" + STEP,
        "[[steps]]\nkill = { node = 1 }\n",
        "[[steps]]\nfuzz = { steps = 100 }\n",
    ],
)
def test_what_a_case_cannot_ask_for_yet_is_refused(tmp_path, text):
    with pytest.raises(CaseError, match=r"requires.nodes is no API|one of produce, fetch"):
        written(tmp_path, text)
