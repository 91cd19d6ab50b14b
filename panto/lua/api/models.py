"""Models: labels to configurations without credentials, and a bounded catalogue."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from panto.lua.api.agents import OnEngine
from panto.lua.driver import Driver, LuaTask
from panto.providers.catalog import Catalog
from panto.schema.errors import UsageError

MOST = 200


def install(driver: Driver, catalog: Callable[[], Catalog], on_owner: OnEngine) -> None:
    """Add the ops `resolve_model` and `models`."""

    async def resolve(config: dict[str, Any]) -> dict[str, Any]:
        model = catalog().resolve(config["model"])
        level = config.get("reasoning")
        if level and level not in model.spec.reasoning:
            levels = ", ".join(model.spec.reasoning) or "none"
            raise UsageError(f"{model.label} has no reasoning level {level!r}", f"it has: {levels}")
        return {
            "model": model.label, "reasoning": level, "style": model.provider.protocol, "wire_model": model.spec.id,
            "tool_choice": config.get("tool_choice"),
        }  # fmt: skip

    async def rows(query: str, limit: float) -> list[dict[str, Any]]:
        found = catalog().rows(query, max(1, min(int(limit), MOST)))
        return [
            {
                "label": row.label, "context": row.context, "price_input": row.price_input,
                "price_output": row.price_output, "reasoning": list(row.reasoning), "images": row.images,
                "usable": row.usable == "", "problem": row.usable or None,
            }
            for row in found
        ]  # fmt: skip

    def resolve_op(task: LuaTask, config: dict[str, Any]) -> Any:
        return on_owner(lambda: resolve(config))

    def models_op(task: LuaTask, query: str, limit: float) -> Any:
        return on_owner(lambda: rows(query, limit))

    driver.ops |= {"resolve_model": resolve_op, "models": models_op}
