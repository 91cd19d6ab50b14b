"""May this call run? Pure: a request and a policy in, one of three answers out.

Deny rules win. Else a rule with an argument beats a bare one, and at equal level ask beats allow. Where no rule speaks,
the mode decides. A child's policy stands under its parent's, and the stricter answer counts.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Literal
from urllib.parse import urlsplit

from panto.agent.approval_shell import Shell, read_shell
from panto.schema.errors import UsageError
from panto.tools import globs, paths
from panto.tools.text import one_line
from panto.tools.tool import Approval, Tool

Mode = Literal["plan", "ask", "auto", "yolo"]
Effect = Literal["allow", "ask", "deny"]
Scope = Literal["user", "project", "session"]

_EFFECTS: tuple[Effect, ...] = ("allow", "ask", "deny")
_CHANGES = frozenset(("write", "edit"))
NETWORK = "network"
"""The name in rules for what commands may reach: `network(npm install *)`."""
_GUARDED = frozenset((".git", ".hg", ".jj", ".panto"))
"""Directories inside a workspace whose files make programs run: auto asks before changing them."""


@dataclass(frozen=True, slots=True)
class Allow:
    """It may run."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A person decides. `reason` completes "asks because", a line each; `rule`: what "always" would save ("" none)."""

    reason: str
    dangerous: bool = False
    rule: str = ""


@dataclass(frozen=True, slots=True)
class Deny:
    """It must not run; the model is told `reason`."""

    reason: str


Verdict = Allow | Ask | Deny


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of config: a tool (its name may hold `*`), and an argument ("" for all calls of it)."""

    effect: Effect
    tool: str
    argument: str = ""
    scope: Scope = "user"

    @classmethod
    def parse(cls, text: str, effect: Effect = "allow", scope: Scope = "user") -> Rule:
        """`bash(git status)` or `read`. Raises UsageError for what is neither."""
        found = re.fullmatch(r"([A-Za-z0-9_.*-]+)(?:\((.*)\))?", text.strip(), re.DOTALL)
        if found is None:
            raise UsageError(f"{text!r} is not a rule", "write a tool's name, or name(argument), e.g. bash(git status)")
        return cls(effect, found[1], (found[2] or "").strip(), scope)

    def __str__(self) -> str:
        return f"{self.tool}({self.argument})" if self.argument else self.tool

    def names(self, tool: str) -> bool:
        """Whether the rule is about this tool. Writing a file and editing it are one power."""
        if self.tool in _CHANGES and tool in _CHANGES:
            return True
        return fnmatchcase(tool, self.tool)


@dataclass(frozen=True, slots=True)
class Policy:
    """What is in force. `workspace` and `roots` are real directories that may be changed, `read_roots` only read.

    `parent` is the policy of the agent that opened this one: what it refuses stays refused. `network`: commands reach
    it where no rule says otherwise.
    """

    mode: Mode
    rules: tuple[Rule, ...] = ()
    workspace: str = "/"
    roots: tuple[str, ...] = ()
    read_roots: tuple[str, ...] = ()
    parent: Policy | None = None
    network: bool = True

    def grant(self, text: str) -> Policy:
        """The same with one more allow rule for this session."""
        return replace(self, rules=(*self.rules, Rule.parse(text, "allow", "session")))

    def inside(self, path: str, reading: bool) -> bool:
        """Whether a real path lies where calls need no asking."""
        roots = (self.workspace, *self.roots, *(self.read_roots if reading else ()))
        return any(paths.inside(path, root) for root in roots)


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """One call to judge. `paths` are real; `subject` is its main argument as a card shows it."""

    tool: str
    approval: Approval
    arguments: Mapping[str, object]
    paths: tuple[str, ...] = ()
    cwd: str = "/"
    subject: str = ""


def request(tool: Tool, arguments: Mapping[str, object], cwd: str) -> ApprovalRequest:
    """The request for a call with checked arguments."""
    name = tool.spec.name
    return ApprovalRequest(name, tool.approval, arguments, tool.paths(arguments, cwd), cwd, tool.title(arguments))


def decide(request: ApprovalRequest, policy: Policy) -> Verdict:
    """The answer for a call; never raises."""
    verdict = _decide(request, policy)
    if policy.parent is None:
        return verdict
    above = decide(request, policy.parent)
    for kind in (Deny, Ask):
        for one in (above, verdict):
            if isinstance(one, kind):
                return one
    return verdict


def _decide(request: ApprovalRequest, policy: Policy) -> Verdict:
    rules = [rule for rule in policy.rules if rule.names(request.tool)]
    if request.tool == "bash":
        return _bash(request, policy, rules)
    matching = [rule for rule in rules if not rule.argument or _matches(rule, request, policy)]
    denied = next((rule for rule in matching if rule.effect == "deny"), None)
    if denied is not None:
        return Deny(f"a rule denies {denied}")
    if policy.mode == "plan" and request.approval != "read" and request.tool != "fetch":
        return Deny("this is plan mode: only reading is allowed")
    if policy.mode == "yolo":
        return Allow()
    suggestion = _suggestion(request, policy)
    spoken = _speaks([rule for rule in matching if rule.argument]) or _speaks(matching)
    if spoken is not None:
        return Allow() if spoken.effect == "allow" else Ask(f"a rule asks for {spoken}", rule=suggestion)
    return _by_mode(request, policy, suggestion)


def _speaks(rules: Sequence[Rule]) -> Rule | None:
    """The rule that decides among those of one level: ask beats allow."""
    for effect in ("ask", "allow"):
        for rule in rules:
            if rule.effect == effect:
                return rule
    return None


def _by_mode(request: ApprovalRequest, policy: Policy, suggestion: str) -> Verdict:
    """No rule speaks: plan, ask or auto decides (plan has refused what changes)."""
    reading = request.approval == "read"
    outside = next((path for path in request.paths if not policy.inside(path, reading)), None)
    if outside is not None:
        return Ask(f"{one_line(outside)} is outside the workspace", rule=suggestion)
    if request.tool == "fetch":
        return Ask(f"no rule allows {request.subject}", rule=suggestion)
    if reading:
        return Allow()
    if policy.mode == "auto" and request.approval == "edit":
        guarded = next((p for p in request.paths if _guarded(p, policy)), None)
        return Allow() if guarded is None else Ask(f"{one_line(guarded)} can make programs run", rule=suggestion)
    return Ask(f"no rule allows {request.tool}", rule=suggestion)


def _guarded(path: str, policy: Policy) -> bool:
    return not _GUARDED.isdisjoint(os.path.relpath(path, policy.workspace).casefold().split("/"))  # as macOS has it


# --- arguments of rules ------------------------------------------------------------------------------------------


def _matches(rule: Rule, request: ApprovalRequest, policy: Policy) -> bool:
    """Whether a rule's argument covers the call: all its paths to allow it, any to ask or deny."""
    if request.tool == "fetch":
        return _address(rule.argument, str(request.arguments.get("url", "")))
    if request.paths:
        covers = all if rule.effect == "allow" else any
        return covers(path_matches(rule.argument, path, policy.workspace) for path in request.paths)
    return fnmatchcase(request.subject, rule.argument)


def path_matches(pattern: str, path: str, workspace: str) -> bool:
    """Whether a real path matches: patterns are absolute, `~`, below the workspace, or (without a slash) a name.

    A pattern without wildcards covers what lies below it too.
    """
    pattern = os.path.expanduser(pattern)
    if "/" not in pattern.rstrip("/") and pattern != "/":
        inside = os.path.relpath(path, workspace) if paths.inside(path, workspace) else path.lstrip("/")
        if pattern in ("**", "*"):
            return paths.inside(path, workspace)
        return any(globs.matches(pattern, part) for part in inside.split("/"))
    absolute = pattern if pattern.startswith("/") else os.path.join(workspace, pattern.removeprefix("./"))
    return any(_below(form, path) for form in {absolute, _resolved(absolute)})


def _below(pattern: str, path: str) -> bool:
    pattern = pattern.rstrip("/") or "/"
    if not re.search(r"[*?\[{]", pattern):
        return paths.inside(path, pattern)
    if pattern.endswith("/**") and path == pattern[:-3]:
        return True
    return globs.matches(pattern.lstrip("/"), path.lstrip("/"))


def _resolved(pattern: str) -> str:
    """A pattern whose fixed beginning has its links resolved, as real paths have."""
    fixed, rest = [], pattern.split("/")
    while rest and not re.search(r"[*?\[{]", rest[0]):
        fixed.append(rest.pop(0))
    return "/".join([os.path.realpath("/".join(fixed) or "/"), *rest])


def _address(pattern: str, url: str) -> bool:
    """Whether a web address matches a host pattern, or an address pattern part by part."""
    try:
        there = urlsplit(url)
        host, there_port = (there.hostname or "").rstrip(".").lower(), there.port
    except ValueError:
        return False
    if "://" not in pattern:
        pattern, _, path = pattern.partition("/")
        return fnmatchcase(host, pattern.lower()) and (not path or fnmatchcase(there.path.lstrip("/"), path))
    scheme, _, rest = pattern.partition("://")
    place, _, path = rest.partition("/")
    name, _, port = place.partition(":")
    ports = {"http": 80, "https": 443}
    try:
        same_port = (there_port or ports.get(there.scheme)) == (int(port) if port else ports.get(scheme))
    except ValueError:
        return False
    within = not path or fnmatchcase(there.path.lstrip("/"), path)
    return there.scheme == scheme and same_port and fnmatchcase(host, name.lower()) and within


def _suggestion(request: ApprovalRequest, policy: Policy) -> str:
    """The narrowest rule that would spare the next question of this kind."""
    if request.tool == "fetch":
        try:
            return f"fetch({urlsplit(str(request.arguments.get('url', ''))).hostname or ''})".replace("()", "")
        except ValueError:
            return ""
    if request.paths:
        if all(policy.inside(path, reading=False) for path in request.paths):
            return f"{request.tool}(**)"
        return f"{request.tool}({request.paths[0]})" if len(request.paths) == 1 else ""
    return request.tool


# --- commands ----------------------------------------------------------------------------------------------------


def _bash(request: ApprovalRequest, policy: Policy, rules: Sequence[Rule]) -> Verdict:
    bare, said = _sorted(rules)
    shell = read_shell(str(request.arguments.get("command", "")))
    denied = "bash" if "deny" in bare else shell.denied(said["deny"])
    if denied:
        return Deny(f"a rule denies {denied}")
    where = request.paths[0] if request.paths else request.cwd
    unclear = ""
    for target in shell.writes():
        path = shell.place(target, where)
        write = ApprovalRequest("write", "edit", {}, (path,) if path else (), where, target.text)
        verdict = _decide(write, replace(policy, mode="ask" if policy.mode == "plan" else policy.mode))
        if isinstance(verdict, Deny):
            return verdict
        if isinstance(verdict, Ask) or not path or policy.mode == "plan":
            unclear = unclear or f"it writes to {one_line(target.text)}"
    if policy.mode == "yolo":
        limits = said["deny"] or any(rule.effect == "deny" and rule.names("write") for rule in policy.rules)
        return Allow() if shell.parsed or not limits else Ask(f"it {shell.problem()}, and there are deny rules", True)
    outside = where if not policy.inside(where, reading=False) else ""
    reason = shell.unallowed(said["allow"], said["ask"], said["deny"], bare, unclear)
    if not reason and outside:
        reason = f"{one_line(outside)} is outside the workspace"
    if not reason and _network(shell, policy) == "ask":
        reason = "a rule asks before it reaches the network"
    if not reason:
        return Allow()
    if policy.mode == "plan":
        return Deny(f"this is plan mode: {reason}")
    dangers = shell.dangers()
    reasons = dangers if dangers and reason.startswith("no rule allows") else (*dangers, reason)
    return Ask("\n".join(reasons), bool(dangers), shell.suggestion())


def _sorted(rules: Sequence[Rule]) -> tuple[dict[str, bool], dict[Effect, list[str]]]:
    """The effects of rules without an argument, and the arguments of the others by effect."""
    bare: dict[str, bool] = {rule.effect: True for rule in rules if not rule.argument}
    said = {effect: [rule.argument for rule in rules if rule.argument and rule.effect == effect] for effect in _EFFECTS}
    return bare, said


def network(command: str, policy: Policy) -> bool:
    """Whether a command may reach the network, once it runs: rules for `network` say so, as for bash."""
    if _network(read_shell(command), policy) == "deny":
        return False
    return policy.parent is None or network(command, policy.parent)


def _network(shell: Shell, policy: Policy) -> Effect:
    bare, said = _sorted([rule for rule in policy.rules if rule.names(NETWORK)])
    if "deny" in bare or shell.denied(said["deny"]) or (said["deny"] and not shell.parsed):
        return "deny"
    if shell.asked(said["ask"]):
        return "ask"
    if said["allow"] and not shell.unallowed(said["allow"], (), said["deny"], {}, ""):
        return "allow"
    for effect in ("ask", "allow"):
        if effect in bare:
            return "ask" if effect == "ask" else "allow"
    return "allow" if policy.network else "deny"
