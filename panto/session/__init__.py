"""Memory: the durable ledger of sessions, the machines that decide what may be recorded, and the folds of it.

Floor 2; its door is the disk (SQLite is imported only here). Its rule: a fact exists when it is durable, and not
before; `Session.commit` is the only way one comes to be.
"""

from __future__ import annotations

from panto.session.bodies import Staged, stage
from panto.session.children import Spent
from panto.session.session import Preview, Session
from panto.session.store import Store

__all__ = ["Preview", "Session", "Spent", "Staged", "Store", "stage"]
