"""`import panto`: the same contract for Python, with and without a running loop."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
CONFIG = """
model = "fake:m"
[providers.fake]
protocol = "scripted"
replies = [%s]
[providers.fake.models.m]
id = "m"
context = 100000
[providers.broken]
protocol = "scripted"
replies = [%s]
[providers.broken.models.m]
id = "m"
"""
REPLY = '{ text = ["one ", "two ", "three"], each_s = 0.01 }'
ERROR = '{ error = { kind = "auth", status = 401, message = "no key" } }'


@pytest.fixture
def configured(home: Path) -> Path:
    config = home / "config"
    config.mkdir()
    (config / "config.toml").write_text(CONFIG % (", ".join([REPLY] * 12), ", ".join([ERROR] * 12)))
    return home


def run(code: str, folder: Path) -> str:
    """Run a program of its own: an engine lives as long as its process."""
    head = f"import sys; sys.path[:0] = [{str(ROOT)!r}]\nimport asyncio, panto\n"
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", head + code],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    return done.stdout


def test_a_plain_for_reads_a_turn(configured: Path, tmp_path: Path) -> None:
    code = """
with panto.Agent(model="fake:m", system_messages=["Be brief."]) as agent:
    text = ""
    for event in agent.run("hello"):
        if event.type == "text_delta":
            text += event.text
    print(text, event.type, event.status)
    print([m.role for m in agent.conversation().messages().result()])
"""
    out = run(code, tmp_path)
    assert out == "one two three turn_ended completed\n['system', 'user', 'assistant']\n"


def test_an_async_for_reads_a_turn(configured: Path, tmp_path: Path) -> None:
    code = """
async def main():
    async with panto.Agent(model="fake:m") as agent:
        kinds = [event.type async for event in agent.run("hello")]
        print(kinds[0], kinds[-1])
        job = agent.run_async("again")
        result = await job.wait()
        print(result.status, result.text, (await agent.tools())[0].name)
        await job.close()
asyncio.run(main())
"""
    assert run(code, tmp_path) == "turn_started turn_ended\ncompleted one two three read\n"


def test_a_plain_for_inside_a_running_loop_names_the_other_one(configured: Path, tmp_path: Path) -> None:
    code = """
async def main():
    agent = panto.Agent(model="fake:m")
    for attempt in (lambda: next(iter(agent.run("x"))), lambda: agent.open().result(), lambda: panto.run("x")):
        try:
            attempt()
        except RuntimeError as e:
            print(e)
asyncio.run(main())
"""
    out = run(code, tmp_path).splitlines()
    assert "`async for`" in out[0] and "`await`" in out[1] and "run_async" in out[2]


def test_a_failed_turn_raises_and_one_call_is_enough(configured: Path, tmp_path: Path) -> None:
    code = """
from panto.schema.errors import ProviderError, UsageError
try:
    for event in panto.Agent(model="broken:m").run("x"):
        pass
except ProviderError as e:
    print(e.kind)
try:
    panto.Agent(model="no:body").open().result()
except UsageError as e:
    print(e.message)
print(panto.run("hello").text)
"""
    assert run(code, tmp_path) == "auth\nthere is no model 'no:body'\none two three\n"


def test_sessions_jobs_and_tools_of_ones_own(configured: Path, tmp_path: Path) -> None:
    code = """
from panto.schema.bodies import ToolOutcome
from panto.schema.messages import Text, ToolSpec
from panto.tools.tool import ToolReply
class Mine:
    spec = ToolSpec("mine", "Mine.", '{"type":"object"}')
    mutates = replay = external = False
    approval = "read"
    def paths(self, arguments, cwd): return ()
    def title(self, arguments): return ""
    async def preview(self, arguments, context): return None
    async def limits(self, arguments, context): return ""
    async def run(self, arguments, context): return ToolReply(ToolOutcome((Text("done"),)))
store = panto.SessionStore()
agent = panto.Agent(model="fake:m", tools=["read", Mine()], store=store)
name = agent.open().result()
print([t.name for t in agent.tools().result()])
job = agent.run_async("go", id="0" * 31 + "1")
while (event := job.pull()) is not None:
    last = event
print(last.type, job.wait().result().status)
job.close().result()
cancelled = agent.run_async("stop")
cancelled.request_cancel().result()
print(cancelled.wait().result().status in ("cancelled", "completed"))
cancelled.close().result()
agent.close().result()
print(store.metadata(name).result().turns, [row.id for row in store.list().result()] == [name])
again = panto.Agent(session_id=name)
print(len(again.conversation().messages().result()) >= 3)
"""
    assert run(code, tmp_path) == "['read', 'mine']\nturn_ended completed\nTrue\n2 True\nTrue\n"


def test_importing_it_starts_nothing() -> None:
    code = "import sys, panto; panto.__all__; print('asyncio' in sys.modules, 'panto.app' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == "False False\n"
    with pytest.raises(AttributeError):
        import panto

        panto.nothing  # noqa: B018
