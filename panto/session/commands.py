"""What may be asked of a session's machines: one frozen value per command.

A command's id follows from what it is about, so that a retry is a replay; its intent is the digest of all it says.
Digests name bodies, which go along in the same commit (`stage`). Run commands name their run, settlements their effect.
"""

from __future__ import annotations

from typing import Literal

from panto.schema.codec import Digest
from panto.schema.messages import Usage
from panto.session.command import Command, Free, Position
from panto.session.ids import checkpoint_id
from panto.session.run_commands import (
    AnswerCall,
    ApproveCall,
    DeclineCall,
    DeliverInputs,
    FailCall,
    FailModel,
    FailRun,
    HoldCall,
    PrepareStep,
    RecoverModel,
    RejectAnswer,
    RejectCall,
    RejectResult,
    RequestInterrupt,
    StartCall,
    StartModel,
    StopRun,
    SubmitCallResult,
    SubmitResult,
    SupersedeResult,
    WithdrawStep,
)  # fmt: skip

__all__ = [
    "AnswerCall", "AnyCommand", "AppendFact", "ApproveCall", "ChangeCwd", "ChangeMode", "ChangeModel",
    "ChangeReasoning", "ChangeSetup", "ChangeTitle", "Command", "CreateTurn", "DeclineCall", "DeliverInputs",
    "EndJob", "FailCall", "FailModel", "FailRun", "GrantApproval", "HoldCall", "InvalidateCheckpoint", "LoseJob",
    "MakeCheckpoint", "Position", "PrepareStep", "RecoverModel", "RejectAnswer", "RejectCall", "RejectInput",
    "RejectResult", "RequestInterrupt", "RetryTurn", "RevokeApproval", "SetMetadata", "SettleTurn", "StartCall",
    "StartJob", "StartModel", "StopRun", "SubmitCallResult", "SubmitInput", "SubmitResult", "Supersede",
    "SupersedeResult", "WithdrawInput", "WithdrawStep",
]  # fmt: skip


# --- inputs -----------------------------------------------------------------------------------------------------


class SubmitInput(Command, frozen=True):
    """Something was said. `body` names a MessageBody with a user message. Accepted always; `input` must be new."""

    input: str
    body: Digest
    when: Literal["step", "turn"] = "step"
    source: Literal["person", "program", "extension", "child", "command"] = "person"

    def subject(self) -> tuple[object, ...]:
        return ("submit", self.input)


class WithdrawInput(Command, frozen=True):
    """Take a submitted, undelivered input back."""

    input: str
    returned: bool = True

    def subject(self) -> tuple[object, ...]:
        return ("resolve", self.input)


class RejectInput(Command, frozen=True):
    """A hook or rule refuses a submitted input; `reason` is for the person."""

    input: str
    reason: str

    def subject(self) -> tuple[object, ...]:
        return ("resolve", self.input)


# --- turns ------------------------------------------------------------------------------------------------------


class CreateTurn(Command, frozen=True):
    """Start a turn with its first run and these submitted inputs (in submission order). No turn may be open."""

    turn: str
    run: str
    inputs: tuple[str, ...]

    def subject(self) -> tuple[object, ...]:
        return ("turn", self.turn)


class RetryTurn(Command, frozen=True):
    """A failed attempt is tried again: run `run`, attempt n+1, with all delivered inputs in accepted order, once."""

    turn: str
    run: str
    attempt: int

    def subject(self) -> tuple[object, ...]:
        return ("retry", self.turn, self.attempt)


class SettleTurn(Command, frozen=True):
    """A turn whose attempt failed is over: failed. (Completed and stopped turns settle with their run.)"""

    turn: str
    attempt: int

    def subject(self) -> tuple[object, ...]:
        return ("settle", self.turn)


class Supersede(Command, frozen=True):
    """Rewind: supersede `turn` and all later ones, and invalidate checkpoints made after it started."""

    turn: str

    def subject(self) -> tuple[object, ...]:
        return ("supersede", self.turn)


# --- checkpoints ------------------------------------------------------------------------------------------------


class MakeCheckpoint(Command, frozen=True):
    """Compaction. `base` is Context.digest() when the summary was asked for; `retained` are ids of its entries."""

    base: Digest
    summary: Digest
    retained: tuple[str, ...] = ()
    usage: Usage = Usage()
    cost: float | None = None
    automatic: bool = False

    @property
    def checkpoint(self) -> str:
        """The checkpoint's id."""
        return checkpoint_id(self.base, self.summary)

    def subject(self) -> tuple[object, ...]:
        return ("checkpoint", self.base, self.summary)


class InvalidateCheckpoint(Command, frozen=True):
    """The newest checkpoint no longer holds: the former context returns, plus the tail."""

    checkpoint: str

    def subject(self) -> tuple[object, ...]:
        return ("invalidate", self.checkpoint)


# --- jobs, metadata, grants, settings, extensions ---------------------------------------------------------------


class StartJob(Free, frozen=True):
    """A background command or child began; a child's session may do so again and again under one id."""

    job: str
    kind: Literal["command", "child"]
    title: str
    call: str = ""


class EndJob(Free, frozen=True):
    """It ended; `outcome` names a ToolOutcome."""

    job: str
    status: Literal["completed", "failed", "cancelled"]
    outcome: Digest | None = None


class LoseJob(Free, frozen=True):
    """Found running when the session was opened."""

    job: str


class SetMetadata(Free, frozen=True):
    """A message's metadata, a JSON object as text; the latest counts."""

    message: str
    metadata: str


class GrantApproval(Command, frozen=True):
    """A rule allowed for this session."""

    grant: str
    rule: str

    def subject(self) -> tuple[object, ...]:
        return ("grant", self.grant)


class RevokeApproval(Command, frozen=True):
    """That rule no longer holds."""

    grant: str

    def subject(self) -> tuple[object, ...]:
        return ("revoke", self.grant)


class ChangeModel(Free, frozen=True):
    """The model label (provider:alias) from here on."""

    model: str


class ChangeReasoning(Free, frozen=True):
    """The reasoning effort from here on ("" none)."""

    reasoning: str


class ChangeMode(Free, frozen=True):
    """The permission mode from here on."""

    mode: Literal["plan", "ask", "auto", "yolo"]


class ChangeTitle(Free, frozen=True):
    """The session's title."""

    title: str


class ChangeCwd(Free, frozen=True):
    """The working directory, absolute."""

    cwd: str


class ChangeSetup(Free, frozen=True):
    """An agent's setup: names an AgentSetup body."""

    setup: Digest


class AppendFact(Free, frozen=True):
    """A fact of an extension's own; `value` names a TextBody with its JSON."""

    owner: str
    kind: str
    value: Digest


AnyCommand = (
    SubmitInput | WithdrawInput | RejectInput | CreateTurn | RetryTurn | SettleTurn | Supersede | DeliverInputs
    | PrepareStep | WithdrawStep | StartModel | RecoverModel | SubmitResult | FailModel | RejectResult | FailRun
    | StartCall | DeclineCall | HoldCall | ApproveCall | RejectCall | AnswerCall | RejectAnswer | SubmitCallResult
    | FailCall | SupersedeResult | RequestInterrupt | StopRun | MakeCheckpoint | InvalidateCheckpoint | StartJob
    | EndJob | LoseJob | SetMetadata | GrantApproval | RevokeApproval | ChangeModel | ChangeReasoning | ChangeMode
    | ChangeTitle | ChangeCwd | ChangeSetup | AppendFact
)  # fmt: skip
