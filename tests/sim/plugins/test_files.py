"""The files of plugins: each mistake is one line, and a setting means one text.

A file is written, chosen as a command would, and loaded into this process. Forgetting what was
loaded, while the choice stays in the environment, is how a process that a command starts begins.
Behind each test both are forgotten.
"""

import os
import re

import pytest

from ottla.broker.errors import ConfigError
from ottla.sim.chance.choices import Tape
from ottla.sim.plugins.files import VARIABLE, as_chosen, choose, load, setting, words
from ottla.sim.plugins.own import LOADED, PluginError
from ottla.sim.settings.settings import RunConfig
from ottla.sim.sweeps.tape_file import Case, decode, encode
from sim_plugins import HEAD, no_plugins, written

GOOD = '@client("my-asker")\ndef asker(visit):\n    """Asks."""\n'


@pytest.fixture(autouse=True)
def _no_plugins():
    with no_plugins():
        yield


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x = (\n", "line 2: '(' was never closed"),
        ("def f(:\n", "line 2: invalid syntax"),
        ("x = 1\nx.y()\n", "line 3: AttributeError: 'int' object has no attribute 'y'"),
        ("def f():\n    nothing\nf()\n", "line 3: NameError: name 'nothing' is not defined"),
        ("raise SystemExit(3)\n", "line 2: SystemExit: 3"),
        ("import no_such_thing\n", "line 2: ModuleNotFoundError: No module named"),
        ("from ottla.sim.plugins.own import checker\n", "write: from ottla.sim.plugins.own import"),
        ("from ottla.sim.plugins import fault\n", "write: from ottla.sim.plugins.own import"),
        ("x = 1\n", "adds nothing; decorate a function"),
        (GOOD.replace("my-", "sim-"), "line 2: 'sim-asker' is no id; write my-, then"),
        (GOOD.replace("my-asker", "sim-I07"), "'sim-I07' is no id"),
        (GOOD.replace("my-asker", "kill"), "'kill' is no id"),
        (GOOD.replace("my-asker", "my-two words"), "'my-two words' is no id"),
        (GOOD.replace('"my-asker"', "7"), "line 2: 7 has no id; write one in brackets"),
        (GOOD + GOOD, "line 5: my-asker is there twice"),
        (GOOD.replace('"""Asks."""', "return"), "line 2: my-asker: asker has no docstring"),
        ('client("my-asker")(7)\n', "line 2: my-asker: decorate a function, not 7"),
        (
            "@client\ndef asker(visit):\n    '''Asks.'''\n",
            "line 2: asker has no id; write one in brackets",
        ),
        (
            '@mutant("my-odd")\ndef odd(replace):\n    """all"""\n    replace(str, "x", 1)\n',
            "my-odd: line 5: str has no x to replace",
        ),
    ],
)
def test_a_mistake_is_told_in_one_line(tmp_path, text, told):
    path = written(tmp_path, text)
    with pytest.raises(PluginError, match=re.escape(told)) as refused:
        choose([path])
    assert str(refused.value).startswith(f"{path}: ")
    assert "\n" not in str(refused.value)
    assert VARIABLE not in os.environ
    assert not LOADED


def test_a_file_that_is_no_plugin_by_its_name_or_its_bytes(tmp_path):
    with pytest.raises(PluginError, match="call it something like mine"):
        load([written(tmp_path, GOOD, "my plugin.py")])
    path = tmp_path / "mine.py"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(PluginError, match=r"mine\.py: "):
        load([path])
    with pytest.raises(OSError, match="No such file"):
        load([tmp_path / "none.py"])


def test_two_plugins_may_not_clash(tmp_path):
    first, second = (written(tmp_path, GOOD, name) for name in ("one.py", "two.py"))
    assert load([first, first]) == load([first])
    with pytest.raises(PluginError, match=r"two\.py: my-asker is in one\.py already"):
        load([first, second])
    (tmp_path / "more").mkdir()
    other = written(tmp_path / "more", GOOD.replace("my-asker", "my-other"), "one.py")
    with pytest.raises(PluginError, match=r"two plugins are called one\.py"):
        load([first, other])
    assert len(load([first, written(tmp_path, GOOD.replace("asker", "b"), "b.py")]).split()) == 2


def test_a_setting_names_the_text_of_a_file(tmp_path):
    path = written(tmp_path, GOOD)
    choose([path])
    told = setting()
    assert re.fullmatch(r"mine\.py:[0-9a-f]{16}", told)
    assert words() == ["--plugin", str(path)]
    assert RunConfig(plugins=told).values()["plugins"] == told
    path.write_text(HEAD + GOOD + "\n", encoding="utf-8")
    assert setting() != told
    choose([])
    assert words() == []
    assert setting() == ""


def test_a_process_that_was_started_loads_what_its_command_has_chosen(tmp_path):
    choose([written(tmp_path, GOOD)])
    told = setting()
    LOADED.clear()
    assert RunConfig(plugins=told).plugins == told
    assert list(LOADED) == [told]
    LOADED.clear()
    written(tmp_path, GOOD + "\n")
    with pytest.raises(ConfigError, match=r"the text of mine\.py has changed"):
        RunConfig(plugins=told)
    (tmp_path / "mine.py").unlink()
    LOADED.clear()
    with pytest.raises(ConfigError, match="No such file"):
        RunConfig(plugins=told)


def test_a_tape_is_replayed_with_the_plugins_of_the_command_that_has_all_of_its(tmp_path):
    path = written(tmp_path, GOOD)
    choose([path])
    told = setting()
    kept = encode(Case(RunConfig(plugins=told), Tape()))
    assert decode(kept).plugins == told
    path.write_text(HEAD + GOOD + "\n", encoding="utf-8")
    again = decode(kept)
    assert again.plugins == told
    assert again.case.config.plugins == setting() != told
    choose([written(tmp_path, GOOD, "other.py")])
    with pytest.raises(PluginError, match=r"this needs mine\.py; name that file"):
        as_chosen(told)
    plain = encode(Case(RunConfig(), Tape()))
    assert decode(plain).case.config.plugins == setting()
    choose([])
    assert decode(plain).case.config == RunConfig()
