"""Models: one request in, parts out, over any wire protocol.

The room's door is the network: it alone speaks HTTP. Its rule: a provider makes one model call and nothing else; it
knows no steps, tools, sessions or screens. `complete` is what an agent calls; `Catalog` finds the model for it.
Nothing heavy is imported here: httpx comes with the first request over HTTP.
"""

from panto.providers.assemble import Assembler
from panto.providers.catalog import Catalog, layered
from panto.providers.complete import complete
from panto.providers.failure import Failure
from panto.providers.http import Http
from panto.providers.model import KeySource, Model, ModelSpec, NetworkSettings, Price, ProviderSettings, Tier
from panto.providers.protocols import Protocols
from panto.providers.provider import Provider
from panto.providers.retry import RetryPolicy, Wait, retryable
from panto.providers.scripted import Scripted

__all__ = [
    "Assembler",
    "Catalog",
    "Failure",
    "Http",
    "KeySource",
    "Model",
    "ModelSpec",
    "NetworkSettings",
    "Price",
    "Protocols",
    "Provider",
    "ProviderSettings",
    "RetryPolicy",
    "Scripted",
    "Tier",
    "Wait",
    "complete",
    "layered",
    "retryable",
]
