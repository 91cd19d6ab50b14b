"""What the approval reads against what bash does: lines put together at random, run by a real bash where allowed."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from panto.agent.approval import Allow, ApprovalRequest, Policy, Rule, decide

RULES = "echo *|cat *|true|env *|xargs *|sh *|find *|a|a *|x *|test *|printf *|EOF|i *".split("|")
POLICY = Policy("ask", tuple(Rule.parse(f"bash({rule})") for rule in RULES), "/")
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


def allowed(text: str) -> bool:
    return decide(ApprovalRequest("bash", "command", {"command": text}, (), "/", text), POLICY) == Allow()


@pytest.mark.long(sample=1)
@pytest.mark.parametrize("block", range(40))
def test_a_command_that_no_rule_allows_is_never_run_by_a_line_that_is_allowed(block: int, tmp_path: Path) -> None:
    binaries = tmp_path / "bin"
    binaries.mkdir()
    for name in ("cat", "env", "xargs", "sh", "find", "true", "test", "bash", "timeout"):
        (binaries / name).symlink_to(str(shutil.which(name)))
    (binaries / "boom").write_text(f"#!/bin/bash\n: > {tmp_path}/boomed\n")
    (binaries / "boom").chmod(0o755)
    place = tmp_path / "cwd"
    place.mkdir()
    dice = random.Random(block)
    tried = 0
    for _ in range(20_000):
        text = line(dice)
        if "boom" not in text or not allowed(text):
            continue
        tried += 1
        subprocess.run(
            ["timeout", "2", "bash", "-c", text], cwd=place, env={"PATH": str(binaries)}, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        assert not (tmp_path / "boomed").exists(), f"allowed, and it ran: {text!r}"
    assert tried > 50
