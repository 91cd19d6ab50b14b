"""Every screen, dialog and state of the main screen: each scene brings a mounted application to one moment."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

from msgspec.structs import replace

from panto.schema import events as e
from panto.schema.bodies import Question, ToolOutcome
from panto.schema.contributions import ExtensionRow, StatusItem
from panto.schema.messages import Usage
from panto.schema.queries import (
    AgentRow,
    AskAgents,
    AskContext,
    AskExtensions,
    AskModels,
    AskPreview,
    AskSessions,
    AskSettings,
    AskTrust,
    AskTurns,
    History,
    ModelRow,
    ProjectTrust,
    PromptPart,
    SessionRow,
    SettingRow,
    TrustRow,
    TurnRow,
)
from panto.schema.signals import ContributionsChanged, RetryWaiting, SessionOwner
from panto.schema.view import DiffView, Hunk, TextView
from panto.tui.screens.owned import OwnedScreen
from panto.tui.screens.pager import PagerScreen
from panto.tui.signing import sign_in
from tests.tui.app.stage import Stage
from tests.tui.stub_client import ME, STATUS, StubClient
from tests.tui.transcript.scenes import MARKDOWN
from tests.tui.transcript.script import Script, main_screen, pytest_output, shop_diff

Scene = Callable[[Stage], Awaitable[None]]
BUSY = replace(STATUS, busy=True, jobs=2, mode="auto", cwd="/tmp/shop", usage=Usage(input=100_000, cache_read=91_000))
REMOVE = Question("approval", "bash", "rm -rf build && python3 -m pytest -q tests", "rm -r deletes files",
                  '{"command": "rm -rf build"}', dangerous=True)  # fmt: skip
INSTALL = Question("approval", "bash", "npm install", "no rule allows npm install", '{"command": "npm install"}',
                   rule="bash(npm install *)")  # fmt: skip
EDIT = Question("approval", "edit", "shop.py", "mode ask", "{}", view=DiffView("shop.py", (Hunk(20, 20, (
    ("-", "        t = 0"), ("-", "        return t"), ("+", "        return sum(i.price for i in self.items)"),
)),), 1, 2))  # fmt: skip
PICK = Question("ask", "ask", "Which of these shall I use?", choices=("Decimal", "float", "int"), multiple=True)
FREE = Question("ask", "ask", "What shall the new column be called?")
TRUST = ProjectTrust("/tmp/shop", (
    TrustRow("AGENTS.md", "instructions, 40 lines"), TrustRow(".panto/config.toml", "runs before each edit: make lint"),
    TrustRow(".panto/config.toml", "starts the server docs: npx -y docs-server", changed=True),
), seen="5f81c2")  # fmt: skip

IN_FORCE = (
    SettingRow("model", '"anthropic:sonnet-5.5"', "/home/someone/.config/panto/config.toml:1"),
    SettingRow("mode", '"auto"', "/home/someone/.config/panto/config.toml:2"),
    SettingRow("providers.mine.base_url", '"http://127.0.0.1:8080/v1/a/rather/long/path"', "/s/.panto/config.toml:3"),
    SettingRow("providers.mine.models.main.context", "131072", "config.toml:1"),
    SettingRow("permissions.allow", '["bash(npm *)"]', "environment"), SettingRow("permissions.ask", "[]", "default"),
    SettingRow("limits.steps", "200", "default"),
)

def client() -> StubClient:
    """A client with something in every list."""
    made = StubClient()
    now = time.time()
    made.answers |= {
        AskModels: (
            ModelRow("anthropic:sonnet-5.5", "s", "anthropic", 200_000, 3.0, 15.0, ("low", "medium", "high"), True),
            ModelRow("anthropic:haiku", "h", "anthropic", 200_000, 0.8, 4.0),
            ModelRow("ollama:qwen", "q", "ollama", 32_768, 0.0, 0.0),
        ),
        AskSessions: (
            SessionRow("a", "aaaa", "Fix the total, then run the tests", "/tmp/shop", now, "m", 3, 9, 0.12, "also it"),
            SessionRow("b", "bbbb", "Add a discount", "/tmp/shop", now - 90_000, "m", 3, 9, 0.84, owner="pid 4"),
            SessionRow("c", "cccc", "Add a discount", "/tmp/shop", now - 270_000, "m", 3, 9, 0.1, forked_from="b"),
        ),
        AskPreview: _earlier(),
        AskTurns: (TurnRow("t1", "Fix the total", "completed", 0, ("/tmp/shop/shop.py",)),
                   TurnRow("t2", "and the README", "superseded", 0), TurnRow("t3", "go on", "stopped", 0)),
        AskAgents: (AgentRow("x", "docs", "completed", "m:haiku"), AgentRow("y", "linter", "failed", "m:haiku")),
        AskSettings: IN_FORCE,
        AskContext: (PromptPart("base", 100, "panto"), PromptPart("rules", 900, "AGENTS.md"),
                     PromptPart("tool:grep", 210, "panto"), PromptPart("tool:todo", 90, "todo")),
        AskTrust: TRUST,
        AskExtensions: (ExtensionRow("tour", "/tmp/shop/extensions/tour", "active", 4.2),
                        ExtensionRow("todo", "/tmp/shop/rocks/todo", "broken", 0.0, "init.lua:12: no such field")),
    }  # fmt: skip
    return made


def _earlier() -> History:
    script = Script()
    script.prompt("Fix the total, then run the tests.")
    (edit,) = script.answer("The price is added once per item.", [("edit", {"path": "shop.py"})])
    script.start(edit)
    script.complete(edit, ToolOutcome((), False, "shop.py", "+2 −4", shop_diff()), 0.02)
    script.begin_step()
    script.answer("Done: total multiplies by count.")
    script.settle()
    return script.history()


def script_of(on: Stage) -> Script:
    """A session written by hand into the application."""
    script = Script(lambda update: on.client.say(replace(update, agent=ME)))
    on.script = script
    return script


# ---------------------------------------------------------------- the main screen


async def fresh(on: Stage) -> None:
    await on.see("ask before running")


async def no_model(on: Stage) -> None:
    on.client.say(replace(STATUS, model="", context_used=0, context_size=0, cost=None))
    on.app.transcript.greet((
        "panto 0.1   ~/shop  main",
        "No model yet.   /login  paste or name a key   /model  local servers (none found)   /tour  offline, 2 minutes",
    ))  # fmt: skip
    await on.see("no model")


async def running(on: Stage) -> None:
    """The flagship: a turn with every common card, a command running, a message queued."""
    main_screen(script_of(on))
    on.client.say(BUSY)
    await on.see("make docs · 12 s")
    await on.see("2 jobs")


async def many_words(on: Stage) -> None:
    """A rule and a status line with more to say than there is room for."""
    script = script_of(on)
    script.prompt("Build it.")
    (call,) = script.answer("", [("bash", {"command": "docker compose run --rm --build integration-tests --verbose"})])
    script.start(call)
    script.wait(75)
    items = (StatusItem("lint", "lint: 3 warnings", 2), StatusItem("deploy", "deploys to staging", 1))
    on.client.say(ContributionsChanged(ME, replace(on.app.now.contributions, statuses=items)))
    on.client.say(replace(BUSY, model="openrouter:anthropic/claude-sonnet-5.5", branch="feature/totals-by-count",
                          cwd="/srv/work/customers/northwind/shop", context_used=186_000, cost=12.4))  # fmt: skip
    await on.see("1 m 15 s")
    await on.see("186k")


async def streaming(on: Stage) -> None:
    script = script_of(on)
    script.prompt("Explain, with a table and some code.")
    script.stream(MARKDOWN[: MARKDOWN.index("cart.py |") + 20])
    on.client.say(replace(STATUS, busy=True))
    await on.see("writing")


async def retrying(on: Stage) -> None:
    script = script_of(on)
    script.prompt("Go on.")
    script.say(RetryWaiting(ME, "rate limited", 429, 3.0, 2, 6))
    on.client.say(replace(STATUS, busy=True))
    await on.see("again in 3 s")


async def failed(on: Stage) -> None:
    script = script_of(on)
    script.prompt("Go on.")
    script.say(RetryWaiting(ME, "connection refused", 0, 3.0, 5, 6))
    await on.see("again in 3 s")
    script.wait(41)
    said = "no answer from api.example.com: connection refused"
    script.fact(e.RunEnded(script.run, "failed", failed="provider", error_kind="connection", message=said))
    script.fact(e.TurnAttemptFailed(script.turn, script.run))
    await on.see("Nothing is lost")


async def stopping(on: Stage) -> None:
    main_screen(script_of(on))
    on.client.say(BUSY)
    await on.see("make docs · 12 s")
    await on.press("escape")
    await on.see("stopping")


async def parked(on: Stage) -> None:
    script = script_of(on)
    script.prompt("Build the manual.")
    (call,) = script.answer("", [("bash", {"command": "make docs"})])
    script.start(call)
    script.progress(call, "compiling makers.md\n")
    for _ in range(2):
        on.client.say(replace(STATUS, parked=True))
    await on.see("this turn is not finished")


async def _long_answer(on: Stage) -> None:
    script = script_of(on)
    script.prompt("Run the tests, then explain.")
    (call,) = script.answer("", [("bash", {"command": "python3 -m pytest -q tests"})])
    script.start(call)
    script.complete(call, ToolOutcome((), False, "python3 -m pytest -q tests", "200 lines",
                                      TextView(pytest_output(), tail=True)), 3.1)  # fmt: skip
    script.begin_step()
    script.answer(MARKDOWN)
    script.wait(5)
    script.settle()
    await on.see("total multiplies")


async def unfolded(on: Stage) -> None:
    await _long_answer(on)
    await on.press("ctrl+o")
    await on.press("ctrl+home")
    await on.see("▾ run")


async def below(on: Stage) -> None:
    """A reader who scrolled up while more came."""
    await _long_answer(on)
    await on.press("ctrl+home")
    script = on.script
    assert script is not None
    script.prompt("And more.")
    script.answer("One line.\n\nAnother.")
    await on.see(" new ──")


async def reading(on: Stage) -> None:
    await _long_answer(on)
    await on.press("ctrl+t")
    await on.see("reading")


async def found(on: Stage) -> None:
    await _long_answer(on)
    on.app.find("total")
    await on.see("found")


async def queue(on: Stage) -> None:
    script = script_of(on)
    script.prompt("Build the manual.")
    on.client.say(replace(STATUS, busy=True))
    script.submit("also check the README")
    script.submit("then tell me what changed", "turn")
    await on.see("tell me what changed")
    on.app.action_waiting()
    await on.until(lambda: on.app.screen is not on.app.main)


# ---------------------------------------------------------------- the prompt


async def written(on: Stage, text: str) -> None:
    """A draft, its last character typed."""
    on.app.composer.set_text(text[:-1])
    await on.typed(text[-1])


async def commands(on: Stage) -> None:
    await on.typed("/co")
    await on.press("down")


async def values(on: Stage) -> None:
    await written(on, "/theme ")
    await on.see("contrast")


async def files(on: Stage) -> None:
    await written(on, "look at @ma")
    await on.see("makers.md")


async def draft(on: Stage) -> None:
    await written(on, "several lines\nof a draft 漢字\nthat grows")


async def chips(on: Stage) -> None:
    await written(on, "see ")
    on.app.desk.pasted("\n".join(f"{n:02d}  pasted line" for n in range(1, 31)))
    await on.see("30 lines")


async def history(on: Stage) -> None:
    await on.press("ctrl+r")
    await on.see("search earlier prompts")


async def chord(on: Stage) -> None:
    await on.press("ctrl+x")
    await on.see("s sessions")


# ---------------------------------------------------------------- questions


def asks(*questions: Question, then: tuple[str, ...] = (), seen: str = "") -> Scene:
    async def scene(on: Stage) -> None:
        on.client.begin("Fix the total")
        for number, question in enumerate(questions):
            on.client.hold(question, f"c{number}")
        await on.alive()
        await on.until(lambda: on.app.question.alive)
        await on.press(*then)
        if seen:
            await on.see(seen)

    return scene


# ---------------------------------------------------------------- screens over it


def opens(name: str, seen: str, *keys: str) -> Scene:
    async def scene(on: Stage) -> None:
        getattr(on.app, f"action_{name}")()
        await on.see(seen)
        for key in keys:
            await on.pilot.press(key)
        await on.pilot.pause()

    return scene


async def pager(on: Stage) -> None:
    on.app.push_screen(PagerScreen(pytest_output()))
    await on.see("test_case_1 ")


async def changes(on: Stage) -> None:
    script = script_of(on)
    script.prompt("Fix it.")
    (edit,) = script.answer("", [("edit", {"path": "shop.py"})])
    script.start(edit)
    script.complete(edit, ToolOutcome((), False, "shop.py", "+2 −4", shop_diff()), 0.02)
    script.settle()
    await on.see("shop.py")
    on.app.action_changes()
    await on.see("changes of the last turn")


async def owned(on: Stage) -> None:
    on.app.push_screen(OwnedScreen(SessionOwner("a" * 32, 4711, "workstation", title="Add a discount")))
    await on.see("4711")
    await on.see("how it ends so far")


async def child(on: Stage) -> None:
    on.app.show_child("x", "docs")
    await on.until(lambda: on.app.screen is not on.app.main)
    await on.see("docs")


async def jobs(on: Stage) -> None:
    script = script_of(on)
    script.prompt("Serve it.")
    (call,) = script.answer("", [("bash", {"command": "npm run serve", "background": True})])
    script.start(call)
    script.fact(e.JobStarted("job1", "command", "npm run serve", call))
    script.complete(call, ToolOutcome((), False, "npm run serve", "runs in the background"))
    script.wait(90)
    await on.see("runs in the background")
    on.app.action_jobs()
    await on.see("── background jobs")
    await on.see("1 m 30 s")


async def login(on: Stage) -> None:
    await sign_in(on.app, "anthropic")
    on.app.reply.set_text("sk-0123456789")
    await on.see("key for anthropic")


SCENES: dict[str, Scene] = {
    "fresh": fresh, "no-model": no_model, "running": running, "many-words": many_words, "streaming": streaming,
    "retrying": retrying, "failed": failed, "stopping": stopping, "parked": parked, "unfolded": unfolded,
    "below": below, "reading": reading, "found": found, "queue": queue,
    "commands": commands, "values": values, "files": files, "draft": draft, "chips": chips, "history": history,
    "chord": chord,
    "dangerous": asks(REMOVE), "ordinary": asks(INSTALL), "edit": asks(EDIT), "second": asks(REMOVE, INSTALL),
    "pick": asks(PICK), "free": asks(FREE), "refuse-why": asks(INSTALL, then=("tab",), seen="›"),
    "edit-first": asks(INSTALL, then=("e",), seen="npm install"),
    "help": opens("help", "keys"), "models": opens("model", "haiku", "down"),
    "sessions": opens("sessions", "discount"), "sessions-delete": opens("sessions", "discount", "down", "ctrl+d"),
    "sessions-rename": opens("sessions", "discount", "ctrl+r"), "turns": opens("tree", "go on"),
    "agents": opens("agents", "linter"), "child": child, "settings": opens("settings", "config.toml:1"),
    "themes": opens("theme", "high"), "context": opens("context", "rules"), "cost": opens("cost", "cost"),
    "mode": opens("mode", "plans"), "efforts": opens("efforts", "high"), "trust": opens("trust", "AGENTS.md"),
    "extensions": opens("extensions", "init.lua:12"), "changes": changes, "owned": owned, "pager": pager,
    "jobs": jobs, "tools": opens("tools", "grep"), "login": login,
}  # fmt: skip
