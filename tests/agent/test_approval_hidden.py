"""Lines that hide a command where bash, or a program, works text out: each of them ran `boom` in a real bash."""

from __future__ import annotations

import pytest

from panto.agent.approval import Allow, ApprovalRequest, Ask, Deny, Policy, Rule, Verdict, decide

NAMES = (
    "git", "echo", "printf", "test", "read", "let", "declare", "typeset", "export", "unset", "wait", "sed", "sort",
    "tar", "find", "uniq", "split", "env", "xargs", "exec", "timeout", "nice", "ionice", "stdbuf", "time", "rsync",
    "fd", "go", "man", "zip", "readonly", "set", "ls", "cat", "mapfile", "getopts", "[", "curl", "bat",
)  # fmt: skip
GENEROUS = Policy("ask", tuple(Rule.parse(f"bash({name} *)") for name in NAMES), workspace="/ws")
FORBIDDING = Policy("yolo", (Rule.parse("bash(boom *)", "deny"),), workspace="/ws")

SUMS = r"""
[[ 'a[$(boom)]' -eq 1 ]] && git status
x='a[$(boom)]'; git status $((x))
x='a[$(boom)]'; (( x )); git status
x='a[`boom`]'; echo $[x]
y=abc; x='a[$(boom)]'; echo "${y:x}"
x='$(boom)'; echo "${x@P}"
x='a[$(boom)]'; echo "${!x}"
x='a[$(boom)]'; echo "${b[x]}"
x='a[$(boom)]'; for ((i=x;i<1;i++)); do echo 1; done
x='a[$(boom)]'; [[ $x -eq 1 ]]; git status
x='a[$(boom)]'; [[ x -eq 1 ]]; git status
x='a[$(boom)]'; [[ "$x" -lt 1 ]]; git status
x='a[$(boom)]'; [[ -v $x ]]; git status
x='a[$(boom)]'; b[x]=1; git status
x='a[$(boom)]'; b=([x]=1); git status
x='-va[$(boom)]'; printf $x y
x='-v a[$(boom)]'; [ $x ]; git status
test -v 'a[$(boom)]'
[ -v 'a[$(boom)]' ]
printf -v 'a[$(boom)]' x
printf '-va[$(boom)]' x
read 'a[$(boom)]' <<< x
unset 'a[$(boom)]'
let 'a[$(boom)]'
let x=1 'a[$(boom)]'
declare 'a[$(boom)]=1'
declare -i q='a[$(boom)]'
declare -n r='a[$(boom)]'; echo $r
typeset -ri r='a[$(boom)]'; echo $r
readonly x='a[$(boom)]'; echo $((x))
export x='a[$(boom)]'; echo $((x))
read x <<< 'a[$(boom)]'; echo $((x))
read x < file; echo $((x))
x=$(cat file); echo $((x + 1))
for x in $(cat file); do echo $((x)); done
set -- 'a[$(boom)]'; echo $(($1))
echo $(( $(cat file) ))
export x='a[$(boom)]'; env bash -c 'echo $((x))'
PS4='$(boom)'; set -x; ls
wait -p 'a[$(boom)]'
""".strip().split("\n")

OPTIONS = r"""
sed -e'1e boom' f
sed -ne'1e boom' f
sed -n -e p -e '1e boom' f
sed --expression='1e boom' f
sed --expressio='1e boom' f
sed -n '/x/!e boom' f
sed 'sMxMboomMe' f
sed 's:x:boom:e' f
sed 's/x/boom/ge;p' f
sed --fil=script f
sed -nf script f
sed '1{p;e boom}' f
sed 'y/a/b/;w out' f
sed 1w/etc/x f
git grep --open-files-in='boom;' x
git grep -iO'boom;' x
git rebase -qxboom HEAD~1
git fetch --upload-pac='boom;' ./
git ls-remote --upload-pac='boom;' .
git log -1 --format=x --output=/ws/f
git diff --outpu=f
git --git-dir=boom status
git --git-dir boom status
GIT_EXTERNAL_DIFF=boom git diff
sort --compress-prog=boom f
sort -uo boom f
tar -cIboom -f x f
tar cIf boom x f
tar --use-comp=boom -cf x f
tar --checkpoint=1 --checkpoint-act=exec=boom -cf x f
rsync -ae boom f x:y
fd -Hx boom
split --filt=boom f
go test --exec boom
zip -qTT boom x f
man -P boom ls
find . -fprintf boom x
find . -name boom -delete
uniq f boom
curl -so boom https://example.org
bat --pager=boom f
env --split='boom x'
env -iS'boom x'
""".strip().split("\n")

WRAPPED = r"""
xargs -0n 1 boom x
xargs --max-chars 1000 boom x
xargs --replace boom x
xargs -rI X boom x
exec -la x boom x
exec -ca x boom x
timeout --sig TERM 5 boom x
nice --adj 5 boom x
ionice --class 3 boom x
stdbuf --output L boom x
env -C . boom x
env -iu X boom x
time -o out boom x
compgen -C 'boom x' x
""".strip().split("\n")

HARMLESS = r"""
echo $((1 + 2))
i=0; while ((i < 10)); do ((i++)); echo $i; done
for i in 1 2 3; do echo $((i * 2)); done
for i in {1..5}; do echo $((i)); done
for ((i=0; i<3; i++)); do echo "$i"; done
[[ $? -eq 0 ]] && ls -l
[[ "$COLUMNS" -gt 80 ]] && ls -l
x=$(git status -s); [ -n "$x" ] && echo "$x"
x=abc; echo ${x:0:2} ${x:-def} ${x#a} "${x%c}" ${#x}
set -e; n=3; echo $((n + 1))
n=$(git status -s); [ "$n" -gt 0 ] && echo "$n"
a=(1 2 3); echo "${a[@]}" ${a[0]} ${#a[@]}
x=abc; printf '%s\n' "$x"
export foo=bar; ls -l
sleep=1; wait $!
[[ -v x ]] && ls -l
sed -n 's/a\/b/c/gp' f
sed -n -e '1,20p' -e '$p' f
sed -E 's|(a)|\1|; /x/,/y/d' f
sed '/^#/d;s/ *$//' f
sed -n '/start/,/end/{/end/!p}' f
sort -rn -k2 -t, f
tar -czf x.tgz f
git log --oneline -5 --stat
git diff --exit-code
find . -name '*.py' -newer x -print
uniq -c f
rsync -av a b
xargs -0 -n1 echo a
timeout -k 1 5 ls -l
nice -5 ls -l
env -i ls -l
""".strip().split("\n")


PUSHES = r"""
git -C . push
git --no-pager push -f
git --work-tree . push
git -C a -C b push origin main
git -P --git-dir=x push
env git -C . push
/usr/bin/git -C . push
""".strip().split("\n")


def verdict(line: str, policy: Policy) -> Verdict:
    return decide(ApprovalRequest("bash", "command", {"command": line}, (), "/ws", line), policy)


@pytest.mark.parametrize("line", [*SUMS, *OPTIONS, "time -o out ls x"])
def test_rules_for_the_visible_commands_do_not_allow_what_a_line_hides(line: str) -> None:
    assert not isinstance(verdict(line, GENEROUS), Allow)


@pytest.mark.parametrize("line", [*SUMS, *(line for line in OPTIONS if "boom" in line), *WRAPPED])
def test_where_a_rule_denies_a_command_a_line_that_may_hide_it_does_not_run_unasked(line: str) -> None:
    assert not isinstance(verdict(line, FORBIDDING), Allow)


@pytest.mark.parametrize("line", HARMLESS)
def test_sums_of_numbers_and_ordinary_options_are_no_reason_to_ask(line: str) -> None:
    assert verdict(line, GENEROUS) == Allow()


@pytest.mark.parametrize("line", PUSHES)
def test_options_before_a_subcommand_of_git_do_not_hide_it_from_a_rule(line: str) -> None:
    git = Rule.parse("bash(git *)")
    assert isinstance(verdict(line, Policy("ask", (git, Rule.parse("bash(git push)", "ask")), workspace="/ws")), Ask)
    assert isinstance(verdict(line, Policy("ask", (git, Rule.parse("bash(git push)", "deny")), workspace="/ws")), Deny)
    assert isinstance(verdict(line, Policy("yolo", (Rule.parse("bash(git push)", "deny"),), workspace="/ws")), Deny)
