"""What the composer's content means: sending, history, completion, pastes and images, the external editor."""

from __future__ import annotations

import asyncio
import os
import shlex
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from textual.events import Key

from panto.schema.messages import Image
from panto.schema.ops import Continue, Prompt, RetryNow, RunShell, Withdraw
from panto.schema.queries import AskCompletions, AskFiles, CommandRow
from panto.tui.completing import Choice, Wanted, commands, file_choice, fits, rank, wanted
from panto.tui.draft import Chip, clean
from panto.tui.images import clipboard_image, image_at, pasted_paths
from panto.tui.widgets.composer import Composer, Desk, is_edit

if TYPE_CHECKING:
    from panto.tui.app import PantoApp
    from panto.tui.widgets.completion import Completion

FOLD_LINES, FOLD_CHARACTERS = 12, 1200
UNFOLD_LINES, UNFOLD_CHARACTERS = 400, 40_000
READING_S = 0.2
"""Seconds between two looks at a list of files that is still being read."""


class PromptDesk(Desk):
    """Stands between the composer and the engine. `rows` are the slash commands known."""

    def __init__(self, app: PantoApp, composer: Composer, completion: Completion) -> None:
        self.app = app
        self.composer = composer
        self.completion = completion
        self.rows: tuple[CommandRow, ...] = ()
        self.past: list[str] = []  # earlier prompts, oldest first
        self._at: int | None = None  # where in the past we are
        self._kept = ""  # the draft that was there before going into the past
        self._wanted: Wanted | None = None
        self._asked = 0
        self._files = ""
        self._searching = False
        self._closed_for = ""
        composer.desk = self

    # --- sending ---------------------------------------------------------------------------------------------

    def send(self, when: Literal["step", "turn"] = "step") -> None:
        """Send what is written. Empty: go on with what waits (a retry, a parked or failed turn)."""
        draft = self.composer.draft
        if draft.text[: draft.cursor].endswith("\\") and draft.cursor == len(draft.text):
            draft.backspace()
            self.composer.newline()
            return
        text, images = draft.opened().strip("\n").rstrip(), draft.images()
        if not text.strip() and not images:
            self._go_on()
            return
        command = text.startswith("/") and not images and "/" not in text.split()[0][1:] and text[1:2].strip()
        if self.app.now.read_only and not command:
            self.app.not_sent()
            return
        if text.startswith("!") and text.lstrip("!").strip():
            hidden = text.startswith("!!")
            self.app.transcript.to_end()  # who sends something wants to see what comes of it
            self._sent(text)
            self.app.link.submit(RunShell(text.lstrip("!").strip(), hidden))
        elif command:
            if self.app.commands.run(text, self.rows):
                self._sent(text)
            else:
                self.app.transcript.to_end()
        else:
            self.app.transcript.to_end()
            self._sent(text)
            self.app.say_sent(text)
            self.app.link.submit(Prompt(text, images, when))

    def _go_on(self) -> None:
        now = self.app.now
        if now.read_only:
            self.app.work_here()
        elif now.retry is not None:
            self.app.link.submit(RetryNow())
        elif not now.busy and (now.failed or (now.status and now.status.parked)):
            self.app.link.submit(Continue())

    def _sent(self, text: str) -> None:
        if text.startswith("/login "):
            text = " ".join(text.split()[:2])  # a key written behind it is not remembered
        if not self.past or self.past[-1] != text:
            self.past.append(text)
        self._at = None
        self.completion.close()
        self.composer.clear()
        self.composer.draft.forget_chips()

    def give_back(self, text: str) -> None:
        """Put text in front of what is written: it was taken back."""
        draft = self.composer.draft
        rest = draft.text.strip("\n")
        self.composer.set_text(clean(text) + ("\n" + rest if rest else ""))

    def take_back(self) -> None:
        """Ask for the last undelivered message."""
        link = self.app.link
        if link.early:
            self.give_back(link.early.pop().text)
        elif self.app.now.waiting:
            link.submit(Withdraw())

    # --- history ---------------------------------------------------------------------------------------------

    def remember(self, earlier: tuple[str, ...]) -> None:
        """Prompts of earlier sessions, newest first."""
        self.past = [*dict.fromkeys(reversed(earlier)), *self.past]

    def edge(self, step: int) -> None:
        """Up on the first row: the past; down on the last: back."""
        draft = self.composer.draft
        at = len(self.past) if self._at is None else self._at
        new = at + step
        if not 0 <= new <= len(self.past) or at == new == len(self.past):
            self.composer.draft.move(0 if step < 0 else len(draft.text))
            self.composer.touched()
            return
        if self._at is None:
            self._kept = draft.text
        self._at = None if new == len(self.past) else new
        text = self._kept if self._at is None else self.past[new]
        self.composer.set_text(text, None if step > 0 else text.find("\n") if "\n" in text else None)
        self._closed_for = text

    def search(self) -> None:
        """Begin to search the past: the composer's text is what is searched for."""
        if not self._searching:
            self._searching, self._kept = True, self.composer.draft.text
            self.composer.clear()
        self.changed()

    def _end_search(self, text: str) -> None:
        self._searching = False
        self.app.rule.left = ""
        self.composer.set_text(text)
        self._closed_for = text
        self.completion.close()

    def _found(self) -> list[Choice]:
        words = self.composer.draft.text.lower().split()
        found = [one for one in reversed(self.past) if all(word in one.lower() for word in words)]
        return [Choice(one, one.strip().replace("\n", " ⏎ ")) for one in dict.fromkeys(found)]

    # --- completion ------------------------------------------------------------------------------------------

    def changed(self) -> None:
        """The draft changed: show what may follow."""
        self.app.last_key = time.monotonic()
        self.again()

    def again(self) -> None:
        """What may follow is known better now; nobody typed."""
        self._follow()
        self.app.hint(self._hint())

    def _follow(self) -> None:
        draft = self.composer.draft
        self._asked += 1  # what was asked for an earlier text comes too late
        if self._searching:
            found = self._found()
            self.app.rule.left = "search earlier prompts"
            self._show(found, 0 if found else -1, "" if found else "nothing found")
            return
        if draft.text == self._closed_for:
            self.completion.close()
            return
        self._closed_for, before = "", self._wanted
        self._wanted = wanted(draft.text, draft.cursor)
        if before is not None and self._wanted is not None and before[::3] != self._wanted[::3]:
            self.completion.close()  # what stands there is of something else; the answer may take its time
        if self._wanted is None:
            self.completion.close()
        elif self._wanted.kind == "command":
            found = commands(self.rows, self._wanted.text)
            self._show(found, -1, "" if found else "no such command" if self.app.link.ready else "still starting")
        else:
            self.app.link.start(self._ask(self._wanted, self._asked))

    async def _ask(self, want: Wanted, number: int) -> None:
        if want.kind == "file":
            await self._ask_files(want, number)
            return
        values = self.app.commands.values(want.command)
        if values is None:
            values = await self.app.link.ask(AskCompletions(want.command, want.text), quiet=True)
        if values is not None and number == self._asked:
            self._show([Choice(value, value) for value in values if rank(value, want.text) is not None], -1)

    async def _ask_files(self, want: Wanted, number: int) -> None:
        """Shows the files that match, and again while the list of them is still being read and nobody chose."""
        again = False
        while True:
            files = await self.app.link.ask(AskFiles(want.text, 200))
            if files is None or number != self._asked:
                return
            if again and (self.completion.chosen > 0 or not self.completion.is_open):
                return
            again = True
            choices = [file_choice(row.path) for row in files.rows]
            self._files = f"{len(choices)} of {files.total} files" + ("" if files.complete else ", reading")
            message = "" if choices or files.complete else "reading the list of files"
            self._show(choices, 0 if choices else -1, message)
            if files.complete:
                return
            await asyncio.sleep(READING_S)

    def _show(self, choices: list[Choice], chosen: int, message: str = "") -> None:
        self.completion.show(choices, chosen, message)
        self.app.hint(self._hint())

    def _hint(self) -> str:
        text, completion = self.composer.draft.text, self.completion
        if completion.is_open and completion.choices:
            if self._wanted and self._wanted.kind == "file" and not self._searching:
                return self._files
            if self._wanted and self._wanted.kind == "argument" and not self._searching:
                return ""
            total = len(self.rows) if self._wanted and self._wanted.kind == "command" else len(self.past)
            return f"{len(completion.choices)} of {max(total, len(completion.choices))}"
        if text.startswith("!!"):
            return "shell, kept from the model"
        if text.startswith("!"):
            return "shell · !! keeps it from the model"
        if text.count("\n") > 1:
            return f"{self.app.keys.key('editor')} opens your editor"
        return ""

    def take(self) -> None:
        """Put the chosen row (the first where none is) in the place of what was typed."""
        completion = self.completion
        if not completion.choices:
            return
        choice = completion.choices[max(0, completion.chosen)]
        if self._searching:
            self._end_search(choice.insert)
            return
        want, draft = self._wanted, self.composer.draft
        if want is None:
            return
        start = want.start - 1 if want.kind in ("command", "file") else want.start
        draft.anchor, end = None, draft.cursor
        draft.move(start)
        draft.anchor = end
        draft.insert(choice.insert)
        self.composer.touched()

    def key(self, event: Key) -> bool:
        """The list, the search and the application come before editing; editing keys are the composer's."""
        if not self.app.chord and self._list_key(event):
            return True
        if not self.app.chord and is_edit(event.key) and event.key not in self.app.keys.chosen:
            return False
        return self.app.press(event.key)

    def _list_key(self, event: Key) -> bool:
        key, completion = event.key, self.completion
        if self._searching and key in ("escape", "ctrl+c"):
            self._end_search(self._kept)
            return True
        if self._searching and key == "ctrl+r":
            completion.move(1)
            return True
        if not completion.is_open:
            if event.character == "?" and not self.composer.draft.text:
                self.app.action_help()
                return True
            return False
        if key in ("up", "down", "ctrl+p", "ctrl+n"):
            completion.move(-1 if key in ("up", "ctrl+p") else 1)
            return bool(completion.choices)
        if key == "escape":
            self._closed_for = self.composer.draft.text
            completion.close()
            self.app.hint(self._hint())
            return True
        if key == "tab":
            self.take()
            return True
        return key == "enter" and self._enter()

    def _enter(self) -> bool:
        """Enter with the list open; True when it only completed."""
        completion, want = self.completion, self._wanted
        if self._searching:
            self.take() if completion.choices else self._end_search(self._kept)
            return True
        if want is None or not completion.choices:
            return False
        chosen = completion.choices[completion.chosen] if completion.chosen >= 0 else None
        if want.kind == "file":
            if chosen is None or chosen.insert.strip() == "@" + want.text or not fits(chosen, want):
                return False
            self.take()
            return True
        if chosen is None and not self._only_match(want):
            return False
        self.take()
        return self.composer.draft.text.endswith(" ")  # it takes arguments: not run yet

    def _only_match(self, want: Wanted) -> bool:
        """Whether an argument was begun that can only become one thing."""
        choices = self.completion.choices
        begun = want.kind == "argument" and bool(want.text.strip())
        return begun and len(choices) == 1 and fits(choices[0], want)

    # --- pastes ----------------------------------------------------------------------------------------------

    def pasted(self, text: str) -> None:
        """Insert pasted text; long ones and images become chips, the same one pasted again is opened."""
        draft = self.composer.draft
        paths = pasted_paths(text)
        images = [image_at(path) for path in paths]
        if paths and all(isinstance(image, Image) for image in images):
            for image in images:
                assert isinstance(image, Image)
                draft.fold(Chip(f"[image: {image.name}]", image=image))
                draft.insert(" ")
        else:
            problem = next((one for one in images if isinstance(one, str)), "")
            if problem:
                self.app.say(problem, "attention")
            self._insert(clean(text))
        self.composer.touched()

    async def paste_image(self) -> None:
        """Fold the clipboard's picture into a chip."""
        image = await clipboard_image()
        if image is None:
            self.app.passing_hint("no picture on the clipboard, or no wl-paste, xclip or pngpaste")
            return
        self.composer.draft.fold(Chip(f"[image: {image.name}]", image=image))
        self.composer.touched()

    def _insert(self, text: str) -> None:
        draft = self.composer.draft
        body = text.rstrip("\n")
        lines = body.count("\n") + 1
        if lines <= FOLD_LINES and len(body) <= FOLD_CHARACTERS:
            draft.insert(text)
            return
        if lines <= UNFOLD_LINES and len(body) <= UNFOLD_CHARACTERS and draft.unfold(text):
            return
        first = next((line.strip() for line in body.split("\n") if line.strip()), "")
        start = first if len(first) <= 14 else first[:13] + "…"
        size = f"{lines} lines" if lines > 1 else f"{len(body)} characters"
        draft.fold(Chip(f"[{size}: {start}]", text))
        if lines <= UNFOLD_LINES and len(body) <= UNFOLD_CHARACTERS:
            self.app.passing_hint("paste it again to see it as text")

    # --- external editor -------------------------------------------------------------------------------------

    async def edit(self) -> None:
        """Open the draft in $VISUAL or $EDITOR; what is saved comes back."""
        command = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
        with tempfile.TemporaryDirectory(prefix="panto-") as folder:
            file = Path(folder) / "prompt.md"
            file.write_text(self.composer.draft.opened(), encoding="utf-8")
            try:
                code = await self.app.outside([*shlex.split(command), str(file)])
            except (OSError, ValueError) as error:
                self.app.say(f"{command}: {error}", "wrong", "set $EDITOR to an editor that is installed")
                return
            if code == 0:
                self.composer.set_text(clean(file.read_text(encoding="utf-8", errors="replace")).rstrip("\n"))
            else:
                self.app.say(f"{command} ended with {code}: the prompt is unchanged", "attention")


async def run_outside(command: list[str]) -> int:
    """Run a program on the terminal itself, without blocking the loop."""
    return await asyncio.to_thread(lambda: subprocess.run(command, check=False).returncode)
