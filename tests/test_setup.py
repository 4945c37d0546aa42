"""What a fresh clone meets first: make, its own set-up, and the pins."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def program(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone that holds only what set-up reads, and a `bin` with the tools that set-up may call."""
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "venv", tmp_path / ".ci" / "venv")
    (tmp_path / "bin").mkdir()
    for tool in ("bash", "dirname", "touch"):
        (tmp_path / "bin" / tool).symlink_to(str(shutil.which(tool)))
    for python in ("python3.13", "python3.12", "python3.11"):
        program(tmp_path / "bin" / python, "exit 127")
    return tmp_path


def set_up(clone: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", ".ci/venv", "stamp"],
        cwd=clone,
        env={"PATH": str(clone / "bin"), **environment},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def test_an_old_python_is_told_in_a_sentence(clone: Path) -> None:
    program(clone / "bin" / "python3", '[ "$1" = --version ] && echo Python 3.9.2 && exit 0\nexit 1')
    done = set_up(clone)
    assert done.returncode != 0
    assert done.stderr.strip() == (
        "marin-sup needs Python 3.11 or newer, but found python3: Python 3.9.2. "
        "Install one, or name it: make venv PYTHON=/path/to/python3.12"
    )
    assert not (clone / "stamp").exists()


def test_a_newer_python_beside_an_old_one_is_used(clone: Path) -> None:
    program(clone / "bin" / "python3", "exit 1")
    program(clone / "bin" / "python3.12", 'case "$*" in *sys.exit*) exit 0;; esac\necho "python3.12 $*"; exit 3')
    done = set_up(clone)
    assert "python3.12 has no venv module" in done.stderr


def test_a_python_without_venv_is_told_how_to_get_it(clone: Path) -> None:
    program(clone / "bin" / "python3", 'case "$*" in *ensurepip*) exit 1;; esac')
    done = set_up(clone)
    assert done.returncode == 1
    assert "python3 has no venv module. Install it (Debian and Ubuntu: apt install python3-venv)" in done.stderr


def test_a_python_that_the_user_names_is_the_only_one_tried(clone: Path) -> None:
    program(clone / "bin" / "python3", "exit 0")
    done = set_up(clone, PYTHON="/nowhere/python")
    assert done.returncode != 0
    assert "but found /nowhere/python:" in done.stderr


def test_make_alone_lists_every_target() -> None:
    listing = subprocess.run(["make", "-C", str(ROOT)], capture_output=True, text=True, timeout=30, check=True).stdout
    phony = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert phony is not None
    for target in phony[1].split():
        assert re.search(rf"^make {target} +\S", listing, re.MULTILINE), f"{target} is not listed"


@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13"])
def test_every_dependency_is_pinned_exactly_once_for_each_python(python: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    pins: dict[str, int] = {}
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        pin = re.fullmatch(r'([a-z0-9-]+)==[0-9][A-Za-z0-9.+]*( ; python_version (<|>=) "3\.12")?', line)
        assert pin or line.startswith("#"), f"not an exact pin: {line}"
        if pin and (pin[3] is None or (pin[3] == "<") == (python == "3.11")):
            pins[pin[1]] = pins.get(pin[1], 0) + 1
    assert {name: count for name, count in pins.items() if count != 1} == {}
    assert [name for name in wanted if normal(re.split(r"[<>=\[ ]", name)[0]) not in pins] == []
