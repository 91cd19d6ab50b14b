"""The configuration: layers, messages with file and line, and writing without harm."""

import json
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panto.app.config import Loaded, environment_layer, file_layer, load, option_layer
from panto.app.config_edit import add_rule, set_value, toml
from panto.app.toml_places import places
from panto.schema.errors import ConfigError
from tests.app.conftest import Panto

EVERYTHING = '''\
# mine
model = "fake:small"            # provider:alias
reasoning = "medium"
mode = "ask"

[providers.fake]
protocol = "openai_chat"
base_url = "http://127.0.0.1:8080/v1"
api_key_env = "FAKE_KEY"
headers = { x-team = "a" }
options = { temperature = 0 }

[providers.fake.models.small]
id = "small-1"
context = 131072
max_output = 8192
price = { input = 0.5, output = 1.5, cache_read = 0.05, cache_write = 0.6 }
images = true
reasoning = ["low", "medium", "high"]

[permissions]
allow = ["read", "grep", "bash(git status)", "bash(npm run test *)"]
ask = ["bash"]
deny = ["bash(rm *)", "write(/etc/**)"]

[extensions]
rocks = ["panto-subagents"]
paths = ["~/src/my-extension"]

[extension.panto-subagents]
max_running = 8

[tools]
sandbox = "auto"
env_pass = []
fetch_private = false

[limits]
steps = 200
budget_usd = 0
repeat = 3

[network]
idle_s = 120
connect_s = 10
ca_file = ""

[screen]
theme = "auto"
leave = "last"

[keys]
send = "ctrl+s"

[prompt.parts]
base = "my.md"

[compaction]
auto = true
threshold = 0.8
'''


def _load(tmp_path: Path, text: str | bytes, name: str = "config.toml") -> Loaded:
    file = tmp_path / name
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load([file_layer(file)])


def test_every_key_of_the_contract_is_understood(tmp_path: Path) -> None:
    loaded = _load(tmp_path, EVERYTHING)
    assert loaded.problems == []
    fake = loaded.config.providers["fake"]
    assert (fake.protocol, fake.headers, fake.options) == ("openai_chat", {"x-team": "a"}, {"temperature": 0})
    small = fake.models["small"]
    assert (small.id, small.context, small.reasoning) == ("small-1", 131072, ("low", "medium", "high"))
    assert small.price is not None
    assert small.price.cache_write == 0.6
    assert loaded.config.extension == {"panto-subagents": {"max_running": 8}}
    assert loaded.config.prompt.parts == {"base": "my.md"}


@pytest.mark.parametrize(
    ("text", "line", "said", "hint"),
    [
        ('modle = "a"', 1, "unknown key 'modle'", "did you mean model?"),
        ("\n\nmode = 3", 3, "mode: 3 is none of 'plan', 'ask', 'auto', 'yolo'", ""),
        ('mode = "god"', 1, "mode: 'god' is none of", ""),
        ("[limits]\n# few\nsteps = -1", 3, "limits.steps: expected a whole number >= 0", ""),
        ('[limits]\nsteps = "many"', 2, "limits.steps: expected a whole number, got text", ""),
        ("[limits]\nsteps = true", 2, "limits.steps: expected a whole number, got true or false", ""),
        ("[network]\nidle_s = 'long'", 2, "network.idle_s: expected a number, got text", ""),
        ("[providers.a.models.b]\ncontext = 'big'", 2, "context: expected a whole number, got text", ""),
        ("limits = 3", 1, "limits: expected a table, got a whole number", ""),
        ("[permissions]\nallow = [\n 'read',\n 3 ]", 2, "permissions.allow: expected text", ""),
        ("[providers.a.models.b]\nprice = { input = 1, output = 1, inptu = 1 }", 2, "unknown key 'inptu'", "input?"),
        ("[providers.a.models.b]\nprice = { input = 1 }", 2, "price: a price needs input and output", ""),
        ("[providers.a.models.'b.c']\ncontxt = 1", 2, "[providers.a.models.b.c]", "did you mean context?"),
        ("[compaction]\nthreshold = 80", 2, "compaction.threshold: expected a number <= 1", ""),
        ("providers.a.api_key = 'sk-secret'", 1, "unknown key 'api_key'", "panto login a"),
        ("nonsense", 1, "", ""),
        ("mode = ", 1, "", ""),
        ('reasoning = "low\n', 1, "", ""),
    ],
)
def test_a_wrong_line_is_one_error_with_its_number_and_the_rest_counts(
    tmp_path: Path, text: str, line: int, said: str, hint: str
) -> None:
    loaded = _load(tmp_path, f"{text}\n[screen]\ntheme = 'dark'\n")
    (problem,) = loaded.problems
    assert problem.line == line
    assert problem.message.startswith(f"{tmp_path}/config.toml:{line}: ")
    assert said in problem.message
    assert hint in problem.hint
    assert "sk-secret" not in problem.message + problem.hint
    assert loaded.config.screen.theme == "dark"


def test_keys_under_a_broken_header_count_for_no_other_table(tmp_path: Path) -> None:
    loaded = _load(tmp_path, "[tools]\nsandbox = 'off'\n[limits\nsteps = 3\n[screen]\ntheme = 'dark'\n")
    assert [p.line for p in loaded.problems] == [3]
    assert (loaded.config.tools.sandbox, loaded.config.limits.steps, loaded.config.screen.theme) == ("off", 200, "dark")


UNCLOSED = """\
model = "fake:small"
[permissions]
allow = [
  "read",  # the bracket below is missing
  "bash(x=1)",

deny = ["bash(rm *)"]
[tools]
sandbox = "off"
[limits]
steps = 3
"""


def test_an_unclosed_bracket_is_named_by_its_own_line_alone_and_the_rest_counts(tmp_path: Path) -> None:
    loaded = _load(tmp_path, UNCLOSED)
    assert _said(loaded) == [":3: the value that begins here is not closed; lines 3 to 5 are ignored"]
    config = loaded.config
    assert (config.permissions.deny, config.tools.sandbox, config.limits.steps) == (("bash(rm *)",), "off", 3)


_OPEN = "the value that begins here is not closed"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[limits]\nsteps = 3\nx = [1,\n 2", f":3: {_OPEN}; lines 3 to 4 are ignored"),
        ("x = [1\n[limits]\nsteps = 3", f":1: {_OPEN}; the line is ignored"),
        ('x = """\nlong\n[limits]\nsteps = 3', f":1: {_OPEN}; lines 1 to 2 are ignored"),
        ("x = { a = [1,\n[limits]\nsteps = 3", f":1: {_OPEN}; the line is ignored"),
        ("[limits]\nsteps = 3\n[permissions]\nallow = [\n'a',\nb,\n]\n", ":6: Invalid value; the line is ignored"),
    ],
)
def test_what_is_not_closed_takes_no_more_than_itself(tmp_path: Path, text: str, said: str) -> None:
    loaded = _load(tmp_path, text)
    assert _said(loaded) == [said]
    assert loaded.config.limits.steps == 3


def _said(loaded: Loaded) -> list[str]:
    return [problem.message.partition("config.toml")[2] for problem in loaded.problems]


def test_a_list_that_never_ends_leaves_what_came_before(tmp_path: Path) -> None:
    loaded = _load(tmp_path, "mode = 'auto'\n[permissions]\nallow = [\n 'read',\n")
    assert loaded.config.mode == "auto"
    assert loaded.problems
    assert all("config.toml:" in p.message for p in loaded.problems)


def test_several_broken_lines_are_each_named(tmp_path: Path) -> None:
    loaded = _load(tmp_path, "a b\nmode = 'auto'\nmode = 'plan'\n= 3\nmodel = 'x:y'\n")
    assert sorted(p.line for p in loaded.problems) == [1, 3, 4]
    assert (loaded.config.mode, loaded.config.model) == ("auto", "x:y")


def test_bytes_that_are_no_utf_8_a_bom_and_crlf_are_survived(tmp_path: Path) -> None:
    loaded = _load(tmp_path, b"\xef\xbb\xbfmode = 'auto'\r\n# \xff\r\nmodel = 'x:y'\r\n")
    assert (loaded.config.mode, loaded.config.model) == ("auto", "x:y")
    assert [p.line for p in loaded.problems] == [2]


def test_an_unreadable_file_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "config.toml").mkdir()
    loaded = load([file_layer(tmp_path / "config.toml")])
    assert "cannot be read" in loaded.problems[0].message


@given(st.text("[]{}=.,'\"\n #ab1", max_size=60))
def test_no_text_breaks_the_reading(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    _load(tmp_path_factory.mktemp("config"), text)


def test_later_layers_win_and_each_value_knows_its_source(tmp_path: Path) -> None:
    (tmp_path / "user").write_text("model = 'a:a'\nreasoning = 'low'\n[permissions]\ndeny = ['bash']\n")
    (tmp_path / "project").write_text("model = 'b:b'\nmode = 'auto'\n[permissions]\ndeny = ['write']\n")
    loaded = load(
        [
            file_layer(tmp_path / "user"),
            file_layer(tmp_path / "project"),
            *environment_layer({"PANTO_MODEL": "c:c", "PANTO_MODE": "plan"}),
            *option_layer({"--model": "d:d"}),
        ]
    )
    assert (loaded.config.model, loaded.config.mode, loaded.config.reasoning) == ("d:d", "plan", "low")
    assert loaded.config.permissions.deny == ("bash", "write")
    sources = {row.key: row.source for row in loaded.rows()}
    assert sources["model"] == "--model"
    assert sources["mode"] == "PANTO_MODE"
    assert sources["reasoning"] == f"{tmp_path}/user:2"
    assert sources["permissions.deny"] == f"{tmp_path}/user:4, {tmp_path}/project:4"
    assert sources["limits.steps"] == "default"


def test_a_wrong_variable_is_named(tmp_path: Path) -> None:
    loaded = load(environment_layer({"PANTO_MODE": "god"}))
    assert "PANTO_MODE: mode: 'god'" in loaded.problems[0].message
    assert loaded.config.mode == "ask"


def test_what_could_be_secret_is_not_shown(tmp_path: Path) -> None:
    text = """
[providers.a]
base_url = "https://me:pw7@host/v1"
headers = { authorization = "Bearer s3cret" }
options = { api_token = "s3cret" }
[extension.x]
password = "s3cret"
"""
    shown = json.dumps([row.value for row in _load(tmp_path, text).rows()])
    assert "s3cret" not in shown
    assert "pw7" not in shown
    assert "host/v1" in shown


# ---------------------------------------------------------------- places


def test_the_place_of_every_value_is_exact() -> None:
    table = tomllib.loads(EVERYTHING)
    found = places(EVERYTHING)
    for path, place in found.items():
        value = table
        for part in path:
            value = value[part]
        if place.end > place.start:
            assert tomllib.loads(f"x = {EVERYTHING[place.start : place.end]}")["x"] == value
        assert path[-1] in EVERYTHING.splitlines()[place.line - 1]


@given(
    st.dictionaries(
        st.text(max_size=6),
        st.one_of(st.text(max_size=12), st.lists(st.text(max_size=6), max_size=3)),
        max_size=5,
    ),
    st.text(max_size=6),
)
def test_places_hold_for_any_keys_and_values(table: dict[str, str | list[str]], header: str) -> None:
    body = "".join(f"{toml(k)} = {toml(v)} # c ' \"\n" for k, v in table.items())
    text = f"# x\n[{toml(header)}.b]\n{body}"
    found = places(text)
    for n, (key, value) in enumerate(table.items()):
        place = found[(header, "b", key)]
        assert place.line == 3 + n
        assert tomllib.loads(f"x = {text[place.start : place.end]}")["x"] == value


# ---------------------------------------------------------------- writing


def test_setting_the_model_changes_that_value_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(EVERYTHING)
    set_value(file, (), "model", "other:big")
    assert file.read_text() == EVERYTHING.replace('"fake:small" ', '"other:big" ')


def test_a_rule_is_added_once_and_comments_stay(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('[permissions]\n# mine\nallow = [\n    "read", # always\n    "grep"\n]\nask = []\n')
    for _ in range(2):
        add_rule(file, "allow", 'bash(echo "é\\")')
    assert file.read_text() == (
        '[permissions]\n# mine\nallow = [\n    "read", # always\n    "grep",\n'
        '    "bash(echo \\"é\\\\\\")",\n]\nask = []\n'
    )
    add_rule(file, "ask", "write")
    add_rule(file, "deny", "edit")
    assert tomllib.loads(file.read_text())["permissions"] == {
        "allow": ["read", "grep", 'bash(echo "é\\")'], "ask": ["write"], "deny": ["edit"],
    }  # fmt: skip
    assert "# mine" in file.read_text()


@pytest.mark.parametrize(
    "text",
    ["", "model = 'x'", "[screen]\ntheme = 'dark'", "permissions = { allow = ['read'] }\n", "permissions.allow = [ ]\n",
     "[permissions]", "[permissions]\nallow = [\n'a', 'b' # last\n]\n", "[permissions]\nallow = ['a',]\n"],
)  # fmt: skip
def test_a_rule_finds_its_place_in_any_file(tmp_path: Path, text: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(text)
    old = tomllib.loads(text)
    add_rule(file, "allow", "ls")
    new = tomllib.loads(file.read_text())
    assert new["permissions"].pop("allow") == [*old.get("permissions", {}).pop("allow", []), "ls"]
    assert {k: v for k, v in new.items() if v} == {k: v for k, v in old.items() if v}


def test_a_broken_file_is_not_written(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("a b")
    with pytest.raises(ConfigError, match="not changed"):
        set_value(file, (), "model", "x")
    assert file.read_text() == "a b"


def test_a_linked_config_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real.toml").write_text("model = 'a'\n")
    (tmp_path / "config.toml").symlink_to("real.toml")
    set_value(tmp_path / "config.toml", (), "model", "b:c")
    assert (tmp_path / "config.toml").is_symlink()
    assert (tmp_path / "real.toml").read_text() == 'model = "b:c"\n'


# ---------------------------------------------------------------- the program


def test_config_show_prints_values_and_sources_and_warns_of_wrong_lines(panto: Panto) -> None:
    panto.config.write_text("model = 'fake:small'\nmodle = 3\n")
    done = panto("config", "show", PANTO_MODE="plan")
    assert done.returncode == 0
    assert 'model = "fake:small"' in done.stdout
    assert f"# {panto.config}:1" in done.stdout
    assert "# PANTO_MODE" in done.stdout
    assert f"{panto.config}:2: unknown key 'modle'" in done.stderr
    rows = json.loads(panto("config", "show", "--json").stdout)
    assert {"key": "mode", "value": '"ask"', "source": "default"} in rows
