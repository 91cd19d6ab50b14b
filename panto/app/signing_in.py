"""`/login` inside a session: a key is checked and stored, and its provider's models can be used at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from panto.app import credentials, login
from panto.schema.errors import PantoError, UsageError
from panto.schema.ops import Login, SetModel

if TYPE_CHECKING:
    from panto.app.build import House
    from panto.app.catalog import Models
    from panto.app.log import Log


def check(models: Models, op: Login) -> Login:
    """The op, its key without blanks. Raises UsageError for an unknown provider or what cannot be a key."""
    if op.provider not in login.providers(models):
        raise UsageError(f"there is no provider {op.provider!r}", f"there are: {', '.join(login.providers(models))}")
    models.catalog.provider(op.provider)
    return Login(op.provider, login.well_formed(op.key))


async def sign_in(house: House, models: Models, log: Log, op: Login) -> None:
    """Check the key with its vendor, store it unless it is refused, use it, and tell the person."""
    name, ground = op.provider, models.ground
    house.show(f"checking the key for {name} …", key="login")
    try:
        found = await login.check_key(ground, name, op.key)
        if found.refused:
            house.show(f"the key is not accepted, and not stored: {found.why}", level="wrong", key="login")
            return
        credentials.store(ground.paths.credentials, name, op.key)
    except PantoError as e:
        house.show(e.message, level="wrong", hint=e.hint, key="login")
        return
    ground.stored[name] = op.key
    models.key(name, models.tables[name]).replace(op.key)
    models.catalog.renew(name)
    log.mask = models.secrets()
    if found.works:
        house.show(f"the key works and is stored in {ground.paths.credentials}", hint=_next(models, name), key="login")
    else:
        hint = f"panto logout {name} takes it out again"
        said = f"the key is stored, but could not be checked: {found.why}"
        house.show(said, level="attention", hint=hint, key="login")
    alias = next(iter(models.catalog.specs(name)), "")
    if alias and not house.agent.model:
        await house.submit(SetModel(f"{name}:{alias}"))


def _next(models: Models, name: str) -> str:
    variable = str(models.tables[name].get("api_key_env") or "")
    if variable and models.ground.paths.environ.get(variable):
        return f"${variable} is set, and goes before what is stored"
    return "/model picks one of its models"
