"""Commands that are written as Markdown: what stands at their top, how their places are filled, whose they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from panto.app import ground, trust
from panto.app.paths import Paths
from panto.app.prompts import Written, filled, written
from panto.schema.errors import UsageError


def paths(home: Path, project: Path) -> Paths:
    return Paths(project, {"HOME": str(home), "PANTO_CONFIG_DIR": str(home / "config")})


def put(folder: Path, name: str, text: str) -> None:
    (folder / "prompts").mkdir(parents=True, exist_ok=True)
    (folder / "prompts" / name).write_text(text)


@pytest.fixture
def places(home: Path, tmp_path: Path) -> Paths:
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    return paths(home, project)


def test_the_head_describes_and_the_file_names_the_command(places: Paths) -> None:
    assert places.config_dir is not None
    put(places.config_dir, "review.md", "---\ndescription: look at it\narguments: <file> [focus]\n---\nReview $1: $2\n")
    put(places.config_dir, "no name.md", "never a command")
    put(places.config_dir, "note.txt", "never a command")
    assert written(ground.read(places, {})) == {
        "review": Written("review", "Review $1: $2", "look at it", "<file> [focus]")
    }


def test_without_a_head_the_first_line_describes_and_the_places_say_what_is_needed(places: Paths) -> None:
    assert places.config_dir is not None
    put(places.config_dir, "a.md", "# Compare\n\n$1 with $2")
    put(places.config_dir, "b.md", "Say $ARGUMENTS")
    put(places.config_dir, "c.md", "Go on.")
    found = written(ground.read(places, {}))
    assert [(one.description, one.usage) for one in found.values()] == [
        ("Compare", "<1> <2>"), ("Say $ARGUMENTS", "[words]"), ("Go on.", ""),
    ]  # fmt: skip


def test_places_are_filled_with_words_or_all_of_them() -> None:
    review = Written("review", "Review $1: $2. All: $ARGUMENTS. Costs $10.", "", "<file> [focus]")
    assert filled(review, "a.py 'the sums'") == "Review a.py: the sums. All: a.py 'the sums'. Costs $10."
    assert filled(review, "a.py") == "Review a.py: . All: a.py. Costs $10."
    with pytest.raises(UsageError, match="/review needs more words"):
        filled(review, "")


def test_an_apostrophe_is_a_letter_and_what_is_filled_in_is_not_filled_again() -> None:
    assert filled(Written("x", "$1|$2", "", ""), "don't $1") == "don't|$1"


def test_words_behind_a_text_without_places_follow_it() -> None:
    assert filled(Written("x", "Tidy up.", "", ""), "the tests") == "Tidy up.\n\nthe tests"
    assert filled(Written("x", "Tidy up.", "", ""), "") == "Tidy up."


def test_a_projects_own_count_once_it_is_trusted_and_win(places: Paths) -> None:
    assert places.config_dir is not None and places.project is None
    put(places.config_dir, "review.md", "mine")
    put(places.cwd / ".panto", "review.md", "theirs")
    put(places.cwd / ".panto", "ship.md", "Ship it")
    again = paths(Path(places.environ["HOME"]), places.cwd)
    assert [one.text for one in written(ground.read(again, {})).values()] == ["mine"]
    trust.agree(trust.look(again), again.trust)
    assert {one.name: one.text for one in written(ground.read(again, {})).values()} == {
        "review": "theirs", "ship": "Ship it",
    }  # fmt: skip
