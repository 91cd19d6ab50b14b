"""The tests of the host once more with freed memory overwritten: what reads it crashes instead of passing by luck."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
FILES = ["test_holes.py", "test_tasks.py", "test_luv.py", "test_host.py", "test_guard.py"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc's way of overwriting freed memory")
@pytest.mark.long(sample=2)
@pytest.mark.parametrize("file", FILES)
def test_the_host_never_reads_freed_memory(file: str) -> None:
    env = os.environ | {"MALLOC_PERTURB_": "165", "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}
    argv = [
        sys.executable,
        "-X",
        "faulthandler",
        "-m",
        "pytest",
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        str(HERE / file),
    ]
    done = subprocess.run(argv, cwd=HERE.parent.parent, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
