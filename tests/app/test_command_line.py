"""The command line: what is understood, what is refused, and with which words."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from panto.app.argv import BadArguments, parse
from tests.app.conftest import Panto


def test_a_prompt_and_options_may_stand_in_any_order() -> None:
    orders = (["-p", "hi", "--model", "a:b"], ["--model=a:b", "-p", "hi"], ["hi", "-m", "a:b", "--print"])
    assert {tuple(sorted(parse(order).options.items())) for order in orders} == {(("--model", "a:b"), ("--print", ""))}
    assert all(parse(order).words == ["hi"] for order in orders)


def test_a_prompt_may_begin_with_a_dash_and_a_space_or_follow_two_dashes() -> None:
    assert parse(["-p", "- one\n- two"]).words == ["- one\n- two"]
    assert parse(["-p", "--", "--model"]).words == ["--model"]


def test_resume_takes_an_id_or_none() -> None:
    assert parse(["--resume"]).options == {"--resume": ""}
    assert parse(["--resume", "ab12"]).options == {"--resume": "ab12"}
    assert parse(["--resume", "--model", "a:b"]).options == {"--resume": "", "--model": "a:b"}


@pytest.mark.parametrize(
    ("words", "said", "hint"),
    [
        (["--modle", "x"], "unknown option --modle", "--mode"),
        (["--model"], "--model needs a value", ""),
        (["-p", "x", "--output", "xml"], "--output xml", "stream-json"),
        (["--mode", "god"], "--mode god", "yolo"),
        (["x", "--output", "json"], "--output needs -p", "panto -p"),
        (["--print=x"], "takes no value", ""),
        (["-p", "--resume"], "--resume needs a session id", "session list"),
        (["--resume", "a", "--continue"], "exclude", ""),
        (["session", "list", "--jsn"], "unknown option --jsn", "--json"),
        (["sesion", "list"], "there is no command sesion", "did you mean session?"),
        (["modles"], "there is no command modles", 'panto "modles'),
        (["rocks", "new", "x"], "there is no command rocks", "did you mean rock?"),
    ],
)
def test_what_is_wrong_is_named_with_the_way_out(words: list[str], said: str, hint: str) -> None:
    with pytest.raises(BadArguments) as caught:
        parse(words)
    assert said in caught.value.message
    assert hint in caught.value.hint


def test_a_prompt_is_not_taken_for_a_slip() -> None:
    for words in (["fix", "the", "bug"], ["modles of cars"], ["-p", "modles"], ["test"], ["doc"], ["loggin is broken"]):
        assert parse(words).words == [word for word in words if word != "-p"]


def test_what_follows_a_script_is_the_scripts() -> None:
    assert parse(["lua", "x.lua", "--model", "-p", "--"]).words == ["x.lua", "--model", "-p", "--"]
    assert parse(["lua", "--help"]).has("--help")


def test_version_and_help_are_printed_and_nothing_heavy_is_imported(panto: Panto) -> None:
    assert panto("--version").stdout.startswith("panto 0.")
    assert "usage: panto" in panto("--help").stdout
    assert "verify [ID]" in panto("session", "--help").stdout
    argv = [*panto.argv()[:1], "-X", "importtime", *panto.argv("--version")[1:]]
    done = subprocess.run(argv, capture_output=True, text=True, env=panto.environ(), cwd=panto.cwd)
    for heavy in ("msgspec", "asyncio", "httpx", "textual", "rich", "sqlite3", "platformdirs", "tomllib", "argparse"):
        assert f"| {heavy}\n" not in done.stderr.replace(" ", "").replace("|", "| ")


def test_a_wrong_option_exits_with_2_and_in_json_too(panto: Panto) -> None:
    done = panto("-p", "hi", "--modle", "x", "--output", "stream-json")
    assert done.returncode == 2
    last = json.loads(done.stdout.splitlines()[-1])
    assert (last["type"], last["status"], last["error"]["kind"]) == ("turn_ended", "failed", "usage")
    assert "did you mean --mode" in done.stderr
    assert panto("--modle").stdout == ""


def test_a_folder_that_is_not_there_is_named(panto: Panto) -> None:
    done = panto("config", "show", "--cwd", "nowhere")
    assert done.returncode == 2
    assert "nowhere: No such file or directory" in done.stderr


def test_a_deleted_working_directory_is_said(panto: Panto) -> None:
    gone = panto.cwd / "gone"
    gone.mkdir()
    script = f'cd {gone} && rmdir {gone} && exec "$@"'
    argv = ["sh", "-c", script, "sh", *panto.argv("config", "show")]
    done = subprocess.run(argv, capture_output=True, text=True, env=panto.environ())
    assert done.returncode == 2
    assert "the working directory: No such file" in done.stderr


def test_a_closed_pipe_ends_quietly(panto: Panto) -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(panto.argv("config", "show"), stdout=write, stderr=subprocess.PIPE, env=panto.environ())
    os.close(write)
    assert done.stderr == b""


def test_every_locale_prints_utf_8(panto: Panto) -> None:
    for locale in ("C", "POSIX", "ru_RU.KOI8-R", "C.UTF-8"):
        panto.config.write_text('model = "é:漢"\n', encoding="utf-8")
        done = panto("config", "show", LC_ALL=locale)
        assert 'model = "é:漢"' in done.stdout
        done = panto("config", "show", "--cwd", "é漢", LC_ALL=locale)
        assert "é漢: No such file" in done.stderr


def test_no_home_at_all_is_no_obstacle(panto: Panto, tmp_path: Path) -> None:
    none = dict.fromkeys(
        ("HOME", "PANTO_CONFIG_DIR", "PANTO_SESSION_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"), ""
    )
    assert panto("config", "show", **none).returncode == 0
