"""ask: a question to the person, with choices or free text. It never runs here: the call waits for the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from panto.schema.bodies import ToolOutcome
from panto.schema.errors import ToolFailure
from panto.schema.messages import Text
from panto.schema.view import TextView
from panto.tools.builtin import Builtin
from panto.tools.text import one_line
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


def answered(question: str, text: str, choices: Sequence[str]) -> ToolOutcome:
    """The outcome of an answered question: what was chosen, or what was typed."""
    said = "\n".join(choices) if choices else text
    return ToolOutcome(
        parts=(Text(said or "(no answer)"),), title=one_line(question), fact=one_line(said, 40), view=TextView(said)
    )
