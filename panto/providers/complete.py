"""One model call to its result: tries, waits, and the fold. What the agent's loop calls."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from msgspec.structs import replace

from panto.providers.assemble import Assembler
from panto.providers.model import Model
from panto.providers.retry import RetryPolicy, Wait, retryable
from panto.schema.errors import ProviderError
from panto.schema.messages import ModelResult, Origin, Request
from panto.schema.stream import StreamPart


async def complete(
    model: Model,
    request: Request,
    *,
    on_part: Callable[[StreamPart], None],
    on_wait: Callable[[Wait], None],
    on_reset: Callable[[int], None],
    retry_now: asyncio.Event,
    policy: RetryPolicy = RetryPolicy(),  # noqa: B008 - frozen
) -> ModelResult:
    """Ask the model; return the whole result or raise ProviderError.

    `on_part` gets each part as it comes. A failed attempt is dropped whole: if parts of it were given out,
    `on_reset(n)` (n counts from 1) says so before the next try begins. `on_wait` is called when a wait begins and, with
    `over=True`, when it ends; setting `retry_now` ends a wait early (it is cleared). Cancelling ends any state at once.
    """
    before = after = resets = 0
    while True:
        heard = False
        try:
            fold = Assembler()
            stream = model.provider.stream(request)
            try:
                async for part in stream:
                    fold.feed(part)
                    on_part(part)
            finally:
                heard = fold.started
                close = getattr(stream, "aclose", None)
                if close is not None:
                    await close()
            origin = Origin(model.provider.name, model.provider.protocol, request.model)
            result = fold.result(origin, price=model.spec.price, made_under=request.context_digest)
            _look_for_silent_overflow(result, model)
            return result
        except ProviderError as error:
            # These are dear: minutes of thought before a silence, or a reply that was paid for and is no use.
            late = heard or error.kind in ("timeout", "malformed")
            before, after = before + (not late), after + late
            if not retryable(error) or before >= policy.tries or after > policy.dropped:
                raise
            wait_s = policy.wait(before + after, error.retry_after)
            if wait_s is None:
                raise _too_long(error) from None
            if heard:
                resets += 1
                on_reset(resets)
            attempts = policy.dropped + 1 if late else policy.tries
            wait = Wait(error.message, error.status, wait_s, (after if late else before) + 1, attempts)
        retry_now.clear()
        on_wait(wait)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(retry_now.wait(), wait.wait_s)
        on_wait(replace(wait, over=True))


def _look_for_silent_overflow(result: ModelResult, model: Model) -> None:
    """Some servers fill the window with the prompt and then say nothing, with status 200."""
    full = model.spec.context and result.usage.input >= 0.99 * model.spec.context
    if full and not result.message.parts:
        text = f"the prompt of {result.usage.input} tokens fills the window of {model.label} ({model.spec.context})"
        raise ProviderError("overflow", text, hint="Compact the conversation (/compact) or start anew.")


def _too_long(error: ProviderError) -> ProviderError:
    seconds = error.retry_after or 0
    hint = f"The server asks for a wait of {seconds:.0f} s: try again after that, or use another model."
    return ProviderError(error.kind, error.message, status=error.status, retry_after=error.retry_after, hint=hint)
