"""A panto that will be killed: python -m tests.rocks.killed ROOT RESUME LOG SCRIPT. Goes on with RESUME if it is given.

Every request is written to LOG as a line, so that a test sees what was asked by whom, over several processes.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from panto.schema import ops
from panto.schema.messages import Request
from tests.rocks import crew as crews


def main(root: str, resume: str, log: str, script: str) -> None:
    """Run until the turn has ended, or for ever."""
    plan = json.loads(script)
    lines = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def child(request: Request) -> Mapping[str, Any]:
        text = crews.said(request)
        os.write(lines, f"{text.splitlines()[0]}\n".encode())
        if any(tool.name == "answer" for tool in request.tools):
            names = json.loads(request.tools[0].schema)["properties"]
            value = {"findings": [], "verdict": "fine"} if "findings" in names else {"answer": "all in all"}
            return {"calls": [{"name": "answer", "arguments": value}]}
        if any(word in text for word in plan["hang"]):
            return {"text": ["half ", "of it"], "stall_s": 600}
        if text.startswith("Find the files"):
            return {"text": json.dumps({"files": plan["files"]})}
        return {"text": f"answer to {text.splitlines()[0]}"}

    async def work(at: Any) -> None:
        print(at.house.client.primary, flush=True)
        if resume:
            await at.house.client.submit(ops.Continue())
        else:
            await at.house.client.submit(ops.Prompt("go"))
        await at.house.until(
            lambda: any(r["type"] == "turn_ended" and "agent" not in r for r in at.house.records()), 60
        )
        print(json.dumps([str(r["text"]) for r in at.house.results() if "agent" not in r]), flush=True)

    turns = [{"text": "the end"}] if resume else [plan["call"], {"text": "the end"}]
    crews.inside(Path(root), crews.crew(*turns, child=child), work, resume=resume)


if __name__ == "__main__":
    main(*sys.argv[1:])
