"""What the approval reads against what bash does: lines put together at random, run by a real bash where allowed."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from panto.agent.approval import Allow, ApprovalRequest, Policy, Rule, decide
from tests.agent.test_approval_lines import ALLOWED, ASKED, DENIED, MORE_ASKED, MORE_DENIED, lines

RULES = (
    "echo *|cat *|true|env *|env|xargs *|sh *|bash *|find *|a|a *|x *|test *|printf *|EOF|i *|ls|ls *|"
    "grep *|timeout *|nice *|sed *|"
    "command *|time *|nohup *|wc *|sort *|head *|read *|export *|git status"
).split("|")
POLICY = Policy("ask", tuple(Rule.parse(f"bash({rule})") for rule in RULES), "/")
PROGRAMS = "cat env xargs sh find true test bash timeout grep sed nice wc sort head nohup ls".split()
_SPACED = """
echo cat boom boom ; && || | & ( ) $( $( ) ` ` ' ' " " \\ # <<< <( >( $(( )) ${x:- ${x} } $x $ $' \\n \\' a x= *
? [a] {a,b}
{ } true 2>&1 >/dev/null - = ~ a() @( +( (( é 1 |& &>/dev/null \\; EOF ! > < [ ] [[ ]] ;; ;& ;;& ${ ${! ${x@P} ${x/a/ $[
"""
PIECES = (
    *_SPACED.split(), "echo ", " boom", "boom ", "boom", " ", " ", " ", "\n", "\n", " #", "\nEOF\n", "<< EOF\n",
    "<<EOF\n",
    "<<'EOF'\n", "<<-EOF\n", '<<"EOF"\n', "<<\\EOF\n", '<<E"O"F\n', "<<EOF", "{ ", "; }", "[[ ", " ]]", "[ ", " ]",
    "x=1 ",
    "if ", " then ", " else ", " fi", "for i in ", " do ", " done", "case a in ", "a)", " esac", "while ", "! ",
    "time ",
    "sh -c ", "env ", "xargs ", "find . -exec ", " {} \\;", "test ", "coproc ", "\t", "\\\n", "select i in a;",
    "function a ",
)  # fmt: skip
_TEXT = """
echo {}|echo {}; {}|echo $({})|echo "{}"|cat <<EOF~{}~EOF~{}|sh -c '{}'|sh -c "{}"|{}|{}|{}|echo `{}`|echo ${{x:-{}}}
[[ {} ]]|case a in {}) {};; esac|echo $(( {} ))|if {}; then {}; fi|echo '{}'|echo {} # {}~{}|env {}|echo a BAR xargs {}
cat <<'EOF'~{}~EOF~{}|echo "$(cat <<EOF~{}~EOF~)"|x={} echo {}|cat <({})|for i in {}; do {}; done|{{ {}; }}|({})
echo $'{}'|echo \\{}|! {}|cat <<< {}|echo {} > {}|cat < {} {}|echo "a`{}`b"|x=({})|[ {} ]|while {}; do {}; done
""".strip().replace("\n", "|").replace("~", "\n")
_SHAPES = [shape.replace("BAR", "|") for shape in _TEXT.split("|")]


def line(dice: random.Random) -> str:
    shape = dice.choice(_SHAPES)
    text = shape
    while "{}" in text:
        text = text.replace("{}", "".join(dice.choice(PIECES) for _ in range(dice.randint(0, 6))), 1)
    return text.replace("{{", "{").replace("}}", "}")


KNOWN = [
    text.replace("whoami", "boom").replace("rm ", "boom ")
    for text in (*lines(ALLOWED), *lines(DENIED), *lines(ASKED), *MORE_DENIED, *MORE_ASKED)
    if len(text) < 300
]
CUTS = [*"\\'\"`$(){}[];&|<>#\n \t=!*?~-", "boom", " boom ", ";boom\n", "\nboom\n", "$(boom)", "`boom`"]


def changed(dice: random.Random) -> str:
    """A line of the lists with letters put in, taken out, or another line behind it."""
    text = dice.choice(KNOWN)
    if dice.random() < 0.3:
        text += dice.choice([";", "\n", "&&", "|", " "]) + dice.choice(KNOWN)
    for _ in range(dice.randint(1, 4)):
        at = dice.randint(0, len(text))
        if dice.random() < 0.75:
            text = text[:at] + dice.choice(CUTS if dice.random() < 0.7 else PIECES) + text[at:]
        else:
            text = text[:at] + text[at + dice.randint(1, 3) :]
    return text


def allowed(text: str) -> bool:
    return decide(ApprovalRequest("bash", "command", {"command": text}, (), "/", text), POLICY) == Allow()


@pytest.mark.long(sample=2)
@pytest.mark.parametrize("block", range(40))
def test_a_command_that_no_rule_allows_is_never_run_by_a_line_that_is_allowed(block: int, tmp_path: Path) -> None:
    binaries = tmp_path / "bin"
    binaries.mkdir()
    for name in PROGRAMS:
        (binaries / name).symlink_to(str(shutil.which(name)))
    (binaries / "boom").write_text(f"#!/bin/bash\n: > {tmp_path}/boomed\n")
    (binaries / "boom").chmod(0o755)
    place = tmp_path / "cwd"
    place.mkdir()
    dice = random.Random(block)
    tried = 0
    for turn in range(8_000):
        text = line(dice) if turn % 2 else changed(dice)
        if "boom" not in text or not allowed(text):
            continue
        tried += 1
        subprocess.run(
            ["timeout", "2", "bash", "-c", text], cwd=place, env={"PATH": str(binaries)}, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        assert not (tmp_path / "boomed").exists(), f"allowed, and it ran: {text!r}"
    assert tried > 50


FOUND = (
    "echo $(x=$ boom)", "env x=>/dev/null boom", "echo \\<<-EOF\n\\\nboom",
    "echo env  do } # ~<<EOF\n\n\\env x=test boom",
    "echo \\ #&&! boom", 'echo "$(cat <<EOF\nEOF2>&1 boom))]\nEOF\n)"', 'sh -c ""\\\n"boom>/dev/null"',
    'sh -c "xargs echo &>/dev/null boom"', "[ \n\nboom\n-f x ] && ls", "[ a && boom ] && ls",
    "cat <<E\"O\"F\nEOF\nboom\n",
    "bash <<'EOF' boom\nls\nEOF", "ls > /dev/null\nboom", "sh -c '((boom))'", "zsh -c 'ls'", "echo `echo \\`boom\\``",
)  # fmt: skip


@pytest.mark.parametrize("text", FOUND)
def test_what_the_grammar_once_read_differently_from_bash_is_not_allowed(text: str) -> None:
    assert not allowed(text)
