"""The wheel carries the shipped extensions and rocks, and an installed panto finds them.

`panto.app.paths.shipped_extensions()` and `shipped_rocks()` return the folder as a Path. In a checkout that is
`extensions/` and `rocks/` beside the package; once installed it is `extensions` and `rocks` in `panto/_shipped/`, where
the wheel puts them.
"""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
WHERE = "from panto.app.paths import shipped_extensions as e, shipped_rocks as r; print(e()); print(r())"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--wheel-dir", str(folder), str(ROOT)]
    done = subprocess.run(pip, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (found,) = folder.glob("panto-*.whl")
    return found


def test_the_wheel_carries_sources_texts_and_the_shipped_folders(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    texts = [p for p in (ROOT / "panto").rglob("*") if p.is_file() and "__pycache__" not in p.parts]
    assert {str(p.relative_to(ROOT)) for p in texts} <= names
    for folder in ("extensions", "rocks"):
        shipped = [p for p in (ROOT / folder).rglob("*") if p.is_file()]
        assert shipped
        assert {f"panto/_shipped/{p.relative_to(ROOT)}" for p in shipped} <= names
    assert not [n for n in names if n.startswith("tests/")]


def test_an_installed_panto_finds_what_was_shipped_with_it(wheel: Path, tmp_path: Path) -> None:
    target = tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(target), str(wheel)]
    done = subprocess.run(pip, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    # The target goes first on the path, so that it wins over the checkout that this interpreter has installed.
    code = f"import sys; sys.path.insert(0, {str(target)!r}); {WHERE}"
    found = _lines(code, tmp_path)
    assert found == [target / "panto/_shipped/extensions", target / "panto/_shipped/rocks"]
    assert all((folder / "README.md").is_file() for folder in found)


def test_a_checkout_finds_its_own_folders() -> None:
    found = _lines(WHERE, ROOT)
    assert found == [ROOT / "extensions", ROOT / "rocks"]
    assert all((folder / "README.md").is_file() for folder in found)


def _lines(code: str, cwd: Path) -> list[Path]:
    done = subprocess.run([sys.executable, "-c", code], cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [Path(line).resolve() for line in done.stdout.splitlines()]
