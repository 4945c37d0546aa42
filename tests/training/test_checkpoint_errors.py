"""What an error in a save or a restore means: storage, damage, a lost peer, or a bug."""

from __future__ import annotations

import errno

import pytest

from training.checkpoint import storage_error

FULL = (
    'RESOURCE_EXHAUSTED: Error writing local file "/ckpt/a0001/2/state/w/c/0": Failed writing: '
    "\"/ckpt/a0001/2/state/w/c/0.__lock\": No space left on device [os_error_code='28'] [source locations='x.cc:1']"
)
DAMAGED = 'DATA_LOSS: Error reading shard entry {}/{} in local file "/ckpt/s/c": Digest mismatch, stored digest is 0x1'
GONE = 'NOT_FOUND: Error opening "zarr3" driver: Error reading local file "/ckpt/s/zarr.json" [os_error_code=\'2\']'
PEER = "UNKNOWN: Gloo all-reduce failed: pair.cc:547] Connection closed by peer [127.0.0.1]:2954"
BARRIER = "INTERNAL: Barrier failed because: task is set to ERROR: UNAVAILABLE: Task 1 heartbeat timeout."


@pytest.mark.parametrize(
    ("error", "of_files", "refused"),
    [
        (ValueError(FULL), True, True),
        (ValueError(DAMAGED), True, False),
        (ValueError(GONE), True, False),
        (ValueError(PEER), False, False),
        (RuntimeError(BARRIER), False, False),
        (ValueError("axis 3 is out of bounds"), False, False),
        (OSError(errno.EIO, "Input/output error"), False, True),
        (FileNotFoundError(errno.ENOENT, "No such file or directory"), False, False),
    ],
    ids=["disk full", "flipped bit", "file gone", "peer lost", "barrier lost", "bug", "bad disk", "absent"],
)
def test_an_error_is_taken_for_what_it_is(error: Exception, of_files: bool, refused: bool) -> None:
    assert storage_error.from_tensorstore(error) == of_files
    assert storage_error.refused(error) == refused


def test_the_detail_of_an_error_keeps_what_was_done_and_why_it_failed() -> None:
    text = storage_error.detail(ValueError(FULL))
    assert text.startswith("RESOURCE_EXHAUSTED: Error writing local file")
    assert text.endswith("No space left on device")
    assert len(storage_error.detail(ValueError("x" * 10_000))) < 500
    assert storage_error.number(ValueError(FULL)) == errno.ENOSPC
