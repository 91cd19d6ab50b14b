"""What the built-in tools share: the text beside the file, and the quiet answers to questions most tools do not ask."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from panto.schema.messages import ToolSpec
from panto.schema.view import View
from panto.tools.text import one_line
from panto.tools.tool import Approval, ToolContext

_HERE = Path(__file__).parent


class Builtin:
    """A tool whose description lies in `<name>.md` beside its file and whose JSON Schema is `schema`.

    `subject` names the argument that a card shows.
    """

    name: ClassVar[str]
    schema: ClassVar[str]
    subject: ClassVar[str] = ""
    mutates: bool = True
    replay: bool = False
    external: bool = False
    approval: Approval = "command"

    @cached_property
    def spec(self) -> ToolSpec:
        text = (_HERE / f"{self.name}.md").read_text("utf-8").strip()
        return ToolSpec(name=self.name, description=text, schema=self.schema)

    def paths(self, arguments: Mapping[str, object], cwd: str) -> tuple[str, ...]:
        return ()

    def title(self, arguments: Mapping[str, object]) -> str:
        value = arguments.get(self.subject, "")
        return one_line(value if isinstance(value, str) else str(value))

    async def preview(self, arguments: Mapping[str, object], context: ToolContext) -> View | None:
        return None

    async def limits(self, arguments: Mapping[str, object], context: ToolContext) -> str:
        return ""
