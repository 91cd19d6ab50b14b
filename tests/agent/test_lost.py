"""A body that a damaged store cannot give: the rest of the session goes on."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

from panto.schema import queries
from tests.agent.test_turns import requests, told
from tests.scheduler.house import call, house, scripted


def test_every_lost_body_leaves_a_session_that_goes_on_and_stays_sendable(tmp_path: Path) -> None:
    async def main() -> None:
        tables = scripted({"text": "I look.", "calls": [call("ls"), call("ls", path=".")]}, {"text": "Done."})
        async with house(tmp_path, tables) as at:
            await at.prompt("first")
            name = at.agent.id
        database = sqlite3.connect(tmp_path / "sessions" / "sessions.db")
        for (trigger,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            database.execute(f"DROP TRIGGER {trigger}")
        database.execute("PRAGMA foreign_keys = OFF")
        database.execute("DELETE FROM body")
        database.commit()
        database.close()
        async with house(tmp_path, scripted({"text": "Still here."}), resume=name) as at:
            await at.prompt("go on")
            assert at.records()[-1]["text"] == "Still here."
            sent = requests(at)[0].messages
            assert [m.role for m in sent] == ["user", "assistant", "tool", "assistant", "user"]
            assert all("lost from storage" in told(m) for m in sent[:-1])
            turns = await at.client.ask(queries.AskTurns())
            assert len(turns) == 2

    asyncio.run(main())
