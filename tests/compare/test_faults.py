"""Cases with several nodes that must not load: each is refused in one line that says why.

What cannot be played, or would be waited for in vain, is found when the file is read: an unknown
node, a fault that is not possible after those before it, a request to a node that is killed.
"""

import pytest

from compare_kit import HEAD, NEW, every_case, loaded
from ottla.compare.case import Act
from ottla.compare.errors import CaseError

THREE = f"{NEW}nodes = 3\n"
STEP = "[[steps]]\nproduce = {}\n"
USES_IT = "[[steps]]\nfetch = { offset = '$p.base_offset' }\n"


def acts(*acts):
    """Steps of acts, then a request to node 1."""
    return THREE + "".join(f"[[steps]]\n{each}\n" for each in acts) + STEP


REFUSED = {
    "nodes in schema 1": (f"{HEAD}nodes = 3\n{STEP}", "nodes needs schema = 2"),
    "an act in schema 1": (
        f"{HEAD}[[steps]]\nkill = 1\n",
        r"steps\[1\].kill needs schema = 2",
    ),
    "a step to another node in schema 1": (
        f"{HEAD}[[steps]]\nnode = 2\nproduce = {{}}\n",
        r"steps\[1\].node needs schema = 2",
    ),
    "in flight in schema 1": (
        f"{HEAD}{STEP}in_flight = true\n",
        r"steps\[1\].in_flight needs schema = 2",
    ),
    "profiles left out in schema 1": (
        f"{HEAD}left_out = {{ reference = 'x' }}\n{STEP}",
        "left_out needs schema = 2",
    ),
    "settings in schema 1": (
        f"{HEAD}settings = {{ max_producers = 1 }}\n{STEP}",
        "settings needs schema = 2",
    ),
    "a setting that there is not": (
        f"{NEW}settings = {{ max_producer = 1 }}\n{STEP}",
        r"settings.max_producer is no key here: .* did you mean max_producers\?",
    ),
    "a setting that is none": (
        f"{NEW}settings = {{ max_producers = 0 }}\n{STEP}",
        "settings.max_producers is 0; 1 to 1000000000 are possible",
    ),
    "more nodes than there can be": (f"{NEW}nodes = 8\n{STEP}", "nodes is 8; 1 to 7 are possible"),
    "no nodes": (f"{NEW}nodes = 0\n{STEP}", "nodes is 0; 1 to 7 are possible"),
    "a step to a node that there is not": (
        f"{THREE}[[steps]]\nnode = 4\nproduce = {{}}\n",
        r"steps\[1\].node is 4; nodes are 1 to 3",
    ),
    "a step to a node that is none": (
        f"{THREE}[[steps]]\nnode = 'follower'\nproduce = {{}}\n",
        r"""node is 'follower'; a number from 1 or "leader" is wanted""",
    ),
    "an act on a node that there is not": (
        f"{NEW}[[steps]]\nkill = 2\n",
        r"steps\[1\].kill is 2; there is one node; see nodes",
    ),
    "an act with a text": (acts("kill = 'x'"), 'kill is "x"; a whole number is wanted'),
    "an act that waits for nobody": (acts("elected = []"), "elected is empty; numbers of nodes"),
    "an act that waits for a node twice": (
        acts("in_sync = [1, 1]"),
        r"in_sync has 1; numbers from 1 to 7 are wanted, each once",
    ),
    "an act with more than itself": (
        acts("kill = 2\nexpect = 'closed'"),
        r"steps\[1\].expect is beside a step that sends nothing",
    ),
    "replicas that there are not": (
        f"{THREE}topics = {{ t = {{ replicas = [1, 4] }} }}\n{STEP}",
        r"topics.t.replicas has 4; nodes are 1 to 3",
    ),
    "no replicas": (
        f"{THREE}topics = {{ t = {{ replicas = [] }} }}\n{STEP}",
        "topics.t.replicas is empty; nodes are 1 to 3",
    ),
    "a leader without a replica": (
        f"{THREE}topics = {{ t = {{ replicas = [1, 2] }} }}\n[[steps]]\nlead = 3\n",
        r"steps\[1\].lead names a node without a replica; 1, 2 have one",
    ),
    "a leader of no topic": (
        f"{THREE}topics = {{}}\n[[steps]]\nelected = [3]\n",
        r"steps\[1\].elected names a node without a replica; none have one",
    ),
    "a request to the dead": (
        acts("kill = 1"),
        r"steps\[2\].node is 1, which is killed; nobody would answer",
    ),
    "a request to a leader that is dead": (
        f"{THREE}[[steps]]\nlead = 2\n[[steps]]\nkill = 2\n{STEP}node = 'leader'\n",
        r"steps\[3\].node is leader, which is killed; nobody would answer",
    ),
    "a fault of the dead": (
        acts("kill = 2", "pause = 2"),
        r"steps\[2\].pause is 2, which is killed; restart = 2 first",
    ),
    "a pause in a pause": (
        acts("pause = 2", "pause = 2"),
        r"steps\[2\].pause is 2, which is paused already",
    ),
    "a resume without a pause": (acts("resume = 2"), r"resume is 2, which is not paused"),
    "an isolation within one": (
        acts("isolate = 2", "isolate = 2"),
        r"steps\[2\].isolate is 2, which is isolated already",
    ),
    "a healing of the healed": (
        acts("isolate = 2", "heal = 2", "heal = 2"),
        r"steps\[3\].heal is 2, which is not isolated",
    ),
    "a leader that cannot lead": (
        acts("isolate = 2", "lead = 2"),
        r"steps\[2\].lead is 2, which is paused or isolated and cannot lead",
    ),
    "a reference to what is in flight": (
        f"{THREE}{STEP}in_flight = true\nname = 'p'\n{USES_IT}",
        r"steps\[2\] refers to \$p.base_offset; no earlier step has the name p",
    ),
    "a pipeline behind an act": (
        f"{THREE}[[steps]]\nkill = 2\n{STEP}pipelined = true\n",
        r"steps\[2\].pipelined is true; there is no request just before it",
    ),
    "a profile that there is not": (
        f"{THREE}left_out = {{ 'kafka-5' = 'x' }}\n{STEP}",
        "left_out.kafka-5 is kafka-5; did you mean kafka-4.3",
    ),
    "a profile left out without a reason": (
        f"{THREE}left_out = {{ 'kafka-4.3' = ' ' }}\n{STEP}",
        "left_out.kafka-4.3 is empty; say why the case says nothing of it",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_in_one_line(tmp_path, name):
    text, told = REFUSED[name]
    with pytest.raises(CaseError, match=told) as refused:
        loaded(tmp_path, text)
    assert str(refused.value).startswith("rule.toml: ")
    assert "\n" not in str(refused.value)


def test_what_ends_begins_again(tmp_path):
    """A killed node that is restarted is neither paused nor isolated."""
    steps = ("isolate = 2", "pause = 2", "kill = 2", "restart = 2", "pause = 2", "resume = 2")
    case = loaded(tmp_path, acts(*steps, "isolate = 2", "restart = 2", "lead = 2"))
    assert case.faults == ("kill", "restart", "pause", "resume", "isolate", "lead")
    assert case.own_cluster
    assert case.topics[0].replicas == (1, 2, 3)


def test_every_act_stands_in_a_case():
    done = {e.ask.word for case in every_case() for e in case.steps if isinstance(e.ask, Act)}
    assert done == {"kill", "restart", "pause", "resume", "isolate", "heal", "lead"} | {
        "elected",
        "in_sync",
    }
