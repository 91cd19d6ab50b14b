"""The wire check: vendors of all four protocols who refuse exactly what the real ones do, and remember every body.

    why = refusal("anthropic_messages", body, headers)           # None: the vendor would take it
    why = refusal("google_generate", body, path=path)            # Gemini's model stands in the path

    with WireCheck("openai_chat") as vendor:                     # a thread and a free port
        vendor.replies += [Reply(calls=[("read", {"path": "a"})]), Reply("done"), Fault(529)]
        ...                                                      # talk to vendor.base_url
        assert not vendor.refusals
        vendor.requests[0].body["messages"]

    async with WireCheck("openai_chat") as vendor: ...           # the same in the running loop

A request that is refused gets the vendor's 400 and takes no reply. Without replies the vendor says "ok". `Fault`
answers a status, cuts the stream, or falls silent. `dialect` (openai, mistral, deepseek, kimi, zai) and `image_limit`
(bytes of base64) make a vendor stricter. Signatures that `Reply` gives are seals over the very text (`seal`): an
altered or foreign one is refused by whoever looks, without a common memory. `PROTOCOLS` names all four.
"""

from tests.wire_check.check import PROTOCOLS, refusal
from tests.wire_check.replies import Protocol, Reply, rendered
from tests.wire_check.rules import seal, sealed
from tests.wire_check.vendor import Fault, Recorded, WireCheck

__all__ = ["PROTOCOLS", "Fault", "Protocol", "Recorded", "Reply", "WireCheck", "refusal", "rendered", "seal", "sealed"]
