"""models, login and doctor, with a real model server on this machine."""

import json
import os
import stat
from pathlib import Path

from tests.app.conftest import Panto
from tests.fake_model import FakeModel, Reply

CANARY = "canary-4f1e9b7a"


def configure(panto: Panto, fake: FakeModel, extra: str = "") -> None:
    panto.config.write_text(
        f"""
model = "fake:small"
[providers.fake]
protocol = "openai_chat"
base_url = "{fake.url}"
api_key_env = "FAKE_KEY"
{extra}
[providers.fake.models.small]
id = "small-1"
context = 131072
price = {{ input = 0.5, output = 1.5 }}
[providers.fake.models.big]
id = "big-1"
"""
    )


def test_models_are_listed_with_prices_and_what_is_missing(panto: Panto, fake_model: FakeModel) -> None:
    configure(panto, fake_model)
    done = panto("models", "fake")
    assert done.returncode == 0
    assert "* fake:small" in done.stdout
    assert "0.5 / 1.5" in done.stdout
    assert "$FAKE_KEY is not set" in done.stdout
    assert "FAKE_KEY" not in panto("models", "fake", FAKE_KEY="k").stdout
    rows = {row["label"]: row for row in json.loads(panto("models", "--json").stdout)}
    assert rows["fake:small"]["context"] == 131072
    assert "tour:guide" in rows


def test_words_that_match_no_model_are_an_error(panto: Panto) -> None:
    done = panto("models", "nosuch")
    assert done.returncode == 2
    assert "nosuch" in done.stderr


def test_login_checks_the_key_live_and_stores_it_for_its_owner_only(panto: Panto, fake_model: FakeModel) -> None:
    configure(panto, fake_model)
    done = panto("login", "fake", stdin=f"{CANARY}\n")
    assert (done.returncode, done.stderr) == (0, "")
    assert "works and is stored" in done.stdout
    assert CANARY not in done.stdout
    assert fake_model.requests[0].headers["authorization"] == f"Bearer {CANARY}"
    file = panto.home / "config/credentials.toml"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "FAKE_KEY" not in panto("models", "fake").stdout


def test_a_key_that_is_refused_is_not_stored(panto: Panto, fake_model: FakeModel) -> None:
    configure(panto, fake_model)
    fake_model.replies.append(Reply(status=401))
    done = panto("login", "fake", stdin=f"{CANARY}\n")
    assert done.returncode == 4
    assert "not accepted" in done.stderr
    assert CANARY not in done.stdout + done.stderr
    assert not (panto.home / "config/credentials.toml").exists()


def test_a_key_that_cannot_be_checked_is_stored_and_that_is_said(panto: Panto, fake_model: FakeModel) -> None:
    configure(panto, fake_model)
    panto.config.write_text(panto.config.read_text().replace(fake_model.url, "http://127.0.0.1:9"))
    done = panto("login", "fake", stdin="k\n")
    assert done.returncode == 0
    assert "could not be checked: cannot reach 127.0.0.1:9" in done.stdout


def test_login_without_a_known_provider_or_a_key_changes_nothing(panto: Panto, fake_model: FakeModel) -> None:
    configure(panto, fake_model)
    assert "there are: " in panto("login").stderr
    assert "there is no provider 'fkae'" in panto("login", "fkae").stderr
    assert panto("login", "fake", stdin="\n").returncode == 2
    assert panto("login", "fake", stdin="two words\n").returncode == 2
    assert not (panto.home / "config/credentials.toml").exists()


def test_the_doctor_says_what_works_and_what_is_missing_with_the_fix(panto: Panto, fake_model: FakeModel) -> None:
    done = panto("doctor")
    assert done.returncode == 0
    assert "no model is configured" in done.stdout
    assert "/tour" in done.stdout
    configure(panto, fake_model)
    done = panto("doctor")
    assert done.returncode == 1
    assert "WRONG provider fake: $FAKE_KEY is not set" in done.stdout
    assert "fix: panto login fake" in done.stdout
    done = panto("doctor", FAKE_KEY=CANARY)
    assert done.returncode == 0, done.stdout
    assert "model fake:small answers" in done.stdout
    assert "key for fake from $FAKE_KEY" in done.stdout
    assert CANARY not in done.stdout


def test_the_doctor_says_what_is_in_force_around_commands(panto: Panto, tmp_path: Path) -> None:
    (tmp_path / "bwrap").write_text("#!/bin/sh\nwhile [ $# -gt 1 ]; do shift; done\n$1\n")
    (tmp_path / "bwrap").chmod(0o755)
    working, path = f"{tmp_path}:{os.environ['PATH']}", str(tmp_path / "empty")
    for setting, programs, code, said in (
        ("auto", working, 0, "ok    commands run in a sandbox: writes only here"),
        ("auto", path, 0, "note  commands run without a sandbox: bubblewrap is not installed"),
        ("require", path, 1, "WRONG no command runs: tools.sandbox requires one"),
        ("off", working, 0, "note  commands run without a sandbox (tools.sandbox is off)"),
    ):
        panto.config.write_text(f'[tools]\nsandbox = "{setting}"\n')
        done = panto("doctor", PATH=programs)
        assert (done.returncode, said in done.stdout) == (code, True), done.stdout


def test_the_doctor_names_a_server_that_is_not_there(panto: Panto, fake_model: FakeModel) -> None:
    configure(panto, fake_model)
    panto.config.write_text(panto.config.read_text().replace(fake_model.url, "http://127.0.0.1:9"))
    done = panto("doctor", FAKE_KEY="k")
    assert done.returncode == 1
    assert "model fake:small does not answer: cannot reach 127.0.0.1:9" in done.stdout
    assert "Is the server running?" in done.stdout


def test_a_broken_settings_line_is_found_by_the_doctor(panto: Panto) -> None:
    panto.config.write_text("modle = 3\n")
    done = panto("doctor")
    assert done.returncode == 1
    assert f"WRONG {panto.config}:1: unknown key 'modle'" in done.stdout
    assert "fix: did you mean model?" in done.stdout


def test_a_place_that_cannot_be_written_is_said(panto: Panto) -> None:
    (panto.home / "file").write_text("")
    done = panto("doctor", PANTO_SESSION_DIR=str(panto.home / "file/sessions"))
    assert done.returncode == 1
    assert f"WRONG {panto.home}/file cannot be written" in done.stdout


def test_a_server_on_this_machine_is_found_and_used_where_nothing_is_configured(
    panto: Panto, fake_model: FakeModel
) -> None:
    servers = f"gone=http://127.0.0.1:9/v1 here={fake_model.url}"
    assert "* here:fake" in panto("models", PANTO_LOCAL_SERVERS=servers).stdout
    done = panto("doctor", PANTO_LOCAL_SERVERS=servers)
    assert f"local server here at {fake_model.url}" in done.stdout
    assert "model here:fake answers" in done.stdout
