"""Files that must not load: each is refused in one line that names the place and what is wrong.

A message that leaves the reader to guess is a bug: each row has the words that must be in it.
A mistake that a file can make, and that ended in a traceback or in silence, gets a row here.
"""

import re

import pytest

from compare_kit import HEAD, every_case, written
from ottla.compare.errors import CaseError
from ottla.compare.loading import load

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
    "a wait without end": ("[[steps]]\nwait = 9999999\n", "wait is 9999999; 1 to 60000 are"),
    "a wait in a pipeline": (
        STEP + "[[steps]]\nwait = 3\npipelined = true\n",
        r"steps\[2\].pipelined is beside a step that sends nothing",
    ),
    "a wait that expects": (
        "[[steps]]\nwait = 3\nexpect = 'closed'\n",
        r"steps\[1\].expect is beside a step that sends nothing",
    ),
    # The step behind the wait was never sent, and the message spoke of a reply that was not there.
    "a pipeline behind a wait": (
        "[[steps]]\nwait = 3\n[[steps]]\nproduce = {}\npipelined = true\n",
        r"steps\[2\].pipelined is true; there is no request just before it",
    ),
    "a pipeline from nowhere": (
        STEP + "pipelined = true\n",
        r"steps\[1\].pipelined is true; there is no request just before it",
    ),
    # A misspelt profile was never read, so what the case says of it was never looked at.
    "a profile that there is not": (
        STEP + '[steps.differs."reference, kafka-4.2"]\nbase_offset = 1\n',
        r"steps\[1\].differs.reference, kafka-4.2 is kafka-4.2; did you mean kafka-4.3",
    ),
    "a topic that is absent": (
        'absent = ["t"]\n' + STEP,
        "topics and absent name t twice",
    ),
    "a name that no topic can have": (
        'topics = { "a b" = {} }\n[[steps]]\nproduce = { topic = "a b" }\n',
        "topics or absent name 'a b': Topic name is invalid",
    ),
    "a name that is too long": (
        f'absent = ["{"a" * 81}"]\n' + STEP,
        "at most 80 characters are possible",
    ),
    "a topic without partitions": (
        "topics = { t = { partitions = 0 } }\n" + STEP,
        "topics.t.partitions is 0; 1 to 1000 are possible",
    ),
    # Each of these ended in a traceback.
    "a sequence too large": (
        "[[steps]]\nproduce = { producer = 7, sequence = 10000000000 }\n",
        "produce.sequence is 10000000000; -2147483648 to 2147483647 are possible",
    ),
    "an epoch too large": (
        "[[steps]]\nproduce = { producer = 7, epoch = 70000, sequence = 0 }\n",
        "produce.epoch is 70000; -32768 to 32767 are possible",
    ),
    "a producer too large": (
        f"[[steps]]\nproduce = {{ producer = {1 << 63}, sequence = 0 }}\n",
        f"produce.producer is {1 << 63}; -",
    ),
    "a time too large": (
        f"[[steps]]\nproduce = {{ timestamp = {1 << 63} }}\n",
        f"produce.timestamp is {1 << 63}; ms since 1970",
    ),
    "a time too far ahead": (
        f'[[steps]]\nproduce = {{ timestamp = "now+{"9" * 20}" }}\n',
        "produce.timestamp is 'now",
    ),
    "headers that are none": (
        "[[steps]]\nproduce = { records = [{ headers = 3 }] }\n",
        r"produce.records\[0\].headers is 3; a table is wanted",
    ),
    "a header that is no text": (
        "[[steps]]\nproduce = { records = [{ headers = { a = 3 } }] }\n",
        r"produce.records\[0\].headers.a is 3; a text is wanted",
    ),
    "a key without a version": (
        "[[steps]]\nrequest = { key = 999 }\n",
        "request.version is missing; a key has no usual version",
    ),
    "a key too large": (
        "[[steps]]\nrequest = { key = 99999, version = 0 }\n",
        "request.key is 99999; -32768 to 32767 are possible",
    ),
    "a version too large": (
        "[[steps]]\nrequest = { api = 'produce', version = 99999, body = '' }\n",
        "request.version is 99999; -32768 to 32767 are possible",
    ),
    "fields of a version that nobody knows": (
        "[[steps]]\nmetadata = { answered_in = 99 }\nexpect = { error_code = 'NONE' }\n",
        "error_code is a field; the fields of metadata 99 are not known, so only an outcome",
    ),
    "a client id too long": (
        f"[[steps]]\nproduce = {{ client_id = '{'x' * 40000}' }}\n",
        "produce.client_id is too long; at most 32767 bytes are possible",
    ),
    "a list for an error code": (
        STEP + "expect = { error_code = [1] }\n",
        r"expect.error_code is '\[1\]'; a name of Kafka's protocol guide is wanted",
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
        (HEAD.replace("1", "3") + STEP, "schema is 3; 1 and 2 are possible"),
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


def test_no_case_says_the_same_as_another():
    titles = [each.title for each in every_case()]
    assert len(titles) == len(set(titles)) >= 120
    steps = [repr((each.steps, each.topics)) for each in every_case()]
    assert len(steps) == len(set(steps))
