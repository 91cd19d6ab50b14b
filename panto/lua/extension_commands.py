"""/extensions: what is loaded, switched off and on, loaded again."""

from __future__ import annotations

from panto.lua.extensions import Extensions
from panto.scheduler.commands import Command, CommandContext, Commands
from panto.schema.errors import UsageError


def register(commands: Commands, extensions: Extensions) -> None:
    """Add the commands that tell of extensions and switch them."""

    async def show(arguments: str, context: CommandContext) -> None:
        word, _, name = arguments.partition(" ")
        if arguments == "reload":
            await extensions.reload()
        elif word in ("on", "off") and name.strip():
            if name.strip() not in extensions.loaded:
                raise UsageError(f"there is no extension {name.strip()}", "/extensions lists all")
            await extensions.switch(name.strip(), word == "on")
        elif arguments:
            raise UsageError("/extensions, /extensions reload, /extensions off NAME or /extensions on NAME")
        context.show(
            table(extensions),
        )

    async def names(text: str) -> tuple[str, ...]:
        offered = ["reload", *(f"{word} {name}" for word in ("off", "on") for name in extensions.loaded)]
        return tuple(one for one in offered if one.startswith(text))

    commands.register(
        Command(
            "extensions",
            "what is loaded, in order, and what it cost",
            show,
            "[reload | on NAME | off NAME]",
            complete=names,
        )
    )


def table(extensions: Extensions) -> str:
    """All extensions as a list, in load order."""
    rows = extensions.rows()
    if not rows:
        return "no extensions"
    lines = []
    for row in rows:
        cost = f", {row.cost_ms:.1f} ms" if row.state == "active" else ""
        lines.append(f"- {row.name} {row.state}{cost}: {row.place}" + (f": {row.problem}" if row.problem else ""))
        if row.state == "active":
            lines.append(
                f"  {row.spent_ms:.0f} ms in Lua, {row.tasks} tasks, {row.coroutines} coroutines, {row.references} "
                f"references, {row.descriptors} descriptors" + (f"; last error: {row.error}" if row.error else "")
            )
    counts = extensions.driver.counts()
    lines.append(f"\n{counts['tasks']} tasks, {counts['memory_kb'] / 1024:.1f} MB in Lua")
    return "\n".join(lines)
