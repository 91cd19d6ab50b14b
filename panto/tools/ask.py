"""ask: a question to the person, with choices or free text. It never runs here: the call waits for the answer."""

from __future__ import annotations

from collections.abc import Mapping

from panto.schema.errors import ToolFailure
from panto.tools.builtin import Builtin
from panto.tools.tool import Approval, ToolContext, ToolReply


class Ask(Builtin):
    name = "ask"
    subject = "question"
    schema = (
        '{"type":"object","properties":{"question":{"type":"string","minLength":1},'
        '"choices":{"type":"array","items":{"type":"string"},"maxItems":20},"multiple":{"type":"boolean"}},'
        '"required":["question"],"additionalProperties":false}'
    )
    mutates = False
    external = True
    approval: Approval = "read"

    async def run(self, arguments: Mapping[str, object], context: ToolContext) -> ToolReply:
        raise ToolFailure("a question is answered by a person, it does not run", "internal")
