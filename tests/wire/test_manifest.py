"""A step exists once its manifest verifies; anything else is damaged or unfinished, and said in words."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest

from supervisor.wire.manifest import verify_step
from tests.worker.checkpoint_tree import FILES, amend, make_step, write_manifest

SCHEMA = json.loads((Path(__file__).parents[2] / "supervisor/wire/schema/trainer-v1.json").read_text())


def listed(directory: Path) -> list[dict[str, object]]:
    files: list[dict[str, object]] = json.loads((directory / "manifest.json").read_text())["files"]
    return files


def relist(directory: Path, **members: object) -> None:
    first, *others = listed(directory)
    amend(directory, files=[{**first, **members}, *others])


def link_the_folder(directory: Path) -> None:
    shutil.move(directory / "d", directory.parent / "elsewhere")
    os.symlink(directory.parent / "elsewhere", directory / "d")


def link_the_file(directory: Path) -> None:
    os.rename(directory / "d/0/data", directory / "d/0/other")
    os.symlink("other", directory / "d/0/data")


def link_the_manifest(directory: Path) -> None:
    os.rename(directory / "manifest.json", directory / "other")
    os.symlink("other", directory / "manifest.json")


def edit_without_signing(directory: Path) -> None:
    text = (directory / "manifest.json").read_text()
    (directory / "manifest.json").write_text(text.replace('"tokens": 10', '"tokens": 11'))


def flip(name: str) -> Callable[[Path], None]:
    def damage(directory: Path) -> None:
        data = bytearray((directory / name).read_bytes())
        data[3] ^= 1
        (directory / name).write_bytes(data)

    return damage


def replace_by_pipe(directory: Path) -> None:
    (directory / "empty").unlink()
    os.mkfifo(directory / "empty")


DAMAGES: list[tuple[Callable[[Path], object], str]] = [
    (lambda d: (d / "d/0/data").unlink(), "'d/0/data' is missing"),
    (lambda d: shutil.rmtree(d / "d"), "is missing"),
    (lambda d: (d / "d/0/data").write_bytes(b"short"), "holds 5 bytes, the manifest says 700"),
    (lambda d: (d / "_METADATA").write_bytes(b'{"tree": 2}'), "hash of '_METADATA' does not match"),
    (flip("_METADATA"), "hash"),
    (flip("manifest.json"), "not JSON"),
    (lambda d: (d / "manifest.json").write_bytes(b""), "not JSON"),
    (lambda d: (d / "manifest.json").write_bytes(b"[" * 100_000), "not JSON"),
    (lambda d: (d / "manifest.json").write_text("{}"), "lacks members"),
    (edit_without_signing, "digest does not match"),
    (lambda d: amend(d, version=2), "another version"),
    (lambda d: amend(d, attempt=2), "another attempt or step"),
    (lambda d: amend(d, step=41), "another attempt or step"),
    (lambda d: amend(d, parent="0:1"), "not ATTEMPT:STEP"),
    (lambda d: amend(d, parent=7), "not ATTEMPT:STEP"),
    (lambda d: amend(d, tokens=-1), "no count"),
    (lambda d: amend(d, extra=1), "does not know"),
    (lambda d: amend(d, files={}), "not a list"),
    (lambda d: amend(d, files=[7]), "files[0] is not an object"),
    (lambda d: relist(d, path="../40/d/0/data"), "leads out"),
    (lambda d: relist(d, path="/etc/passwd"), "leads out"),
    (lambda d: relist(d, path="d//0/data"), "leads out"),
    (lambda d: relist(d, path="a\0b"), "not a relative path"),
    (lambda d: relist(d, path="\ud800" * 100), "leads out"),
    (lambda d: relist(d, path=""), "not a relative path"),
    (lambda d: relist(d, path=5), "not a relative path"),
    (lambda d: relist(d, bytes=True), "the manifest says True"),
    (lambda d: relist(d, sha256="XYZ"), "not a SHA-256"),
    (link_the_folder, "behind a symbolic link"),
    (link_the_file, "not a regular file"),
    (link_the_manifest, "the manifest is not a regular file"),
    (replace_by_pipe, "'empty' is not a regular file"),
]


@pytest.mark.parametrize(("damage", "said"), DAMAGES, ids=range(len(DAMAGES)))
def test_a_damaged_step_is_noticed_and_the_reason_said(
    tmp_path: Path, damage: Callable[[Path], object], said: str
) -> None:
    directory = make_step(tmp_path, 1, 40)
    assert verify_step(directory, 1, 40).state == "verified"
    damage(directory)
    found = verify_step(directory, 1, 40)
    assert (found.state, found.parent) == ("damaged", None)
    assert said in found.reason
    assert found.reason.isprintable()


def test_a_good_step_says_its_parent_and_tokens_and_its_manifest_fits_the_schema(tmp_path: Path) -> None:
    directory = make_step(tmp_path, 12345, 0, parent="7:20", tokens=2**40)
    found = verify_step(directory, 12345, 0)
    assert (found.state, found.parent, found.tokens, found.reason) == ("verified", (7, 20), 2**40, "")
    schema = {"$ref": "#/$defs/manifest", "$defs": SCHEMA["$defs"]}
    jsonschema.Draft202012Validator(schema).validate(json.loads((directory / "manifest.json").read_text()))


def test_a_step_without_a_manifest_is_unfinished_whatever_lies_there(tmp_path: Path) -> None:
    directory = make_step(tmp_path, 1, 40)
    (directory / "manifest.json").unlink()
    assert verify_step(directory, 1, 40).state == "unfinished"


def test_every_truncation_of_a_manifest_is_noticed(tmp_path: Path) -> None:
    directory = make_step(tmp_path, 1, 40)
    whole = (directory / "manifest.json").read_bytes()
    for length in range(len(whole)):
        (directory / "manifest.json").write_bytes(whole[:length])
        assert verify_step(directory, 1, 40).state == "damaged", f"cut at {length}"


def test_every_flipped_bit_of_a_manifest_is_noticed_or_changes_nothing(tmp_path: Path) -> None:
    directory = make_step(tmp_path, 1, 40)
    whole = (directory / "manifest.json").read_bytes()
    meaning = json.loads(whole)
    for position in range(len(whole)):
        flipped = bytearray(whole)
        flipped[position] ^= 1 << position % 8
        (directory / "manifest.json").write_bytes(flipped)
        if verify_step(directory, 1, 40).state == "verified":
            assert json.loads(bytes(flipped)) == meaning, f"byte {position} means something else and was accepted"


def test_files_beyond_the_list_do_not_matter(tmp_path: Path) -> None:
    directory = make_step(tmp_path, 1, 40)
    (directory / "commit_success.txt").write_text("")
    write_manifest(directory, {**json.loads((directory / "manifest.json").read_text())})
    assert verify_step(directory, 1, 40).state == "verified"
    assert len(listed(directory)) == len(FILES)
