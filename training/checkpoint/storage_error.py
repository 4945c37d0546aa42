"""Telling apart what TensorStore's errors mean: storage that refuses, or data that is not what was written.

TensorStore raises ValueError, RuntimeError and others alike; their text begins with the name of an absl status, and
carries the system's error number where there was one.
"""

from __future__ import annotations

import errno
import re

_STATUS = re.compile(
    r"\b(CANCELLED|UNKNOWN|INVALID_ARGUMENT|DEADLINE_EXCEEDED|NOT_FOUND|ALREADY_EXISTS|PERMISSION_DENIED|RESOURCE_EXHAUSTED"
    r"|FAILED_PRECONDITION|ABORTED|OUT_OF_RANGE|UNIMPLEMENTED|INTERNAL|UNAVAILABLE|DATA_LOSS|UNAUTHENTICATED): "
)
_FILES = re.compile(
    r"\blocal (file|directory)\b|\"zarr3?\" driver|\btensorstore\b", re.IGNORECASE
)  # JAX's errors have a status, too
_NUMBER = re.compile(r"os_error_code='(\d+)'")
_ABSENT = {errno.ENOENT, errno.ENOTDIR, errno.EISDIR}
_DETAIL_ENDS = 200  # characters of a long text to show at either end: what was done, and why it failed


def from_tensorstore(error: BaseException) -> bool:
    text = str(error)
    return not isinstance(error, OSError) and _STATUS.search(text) is not None and _FILES.search(text) is not None


def number(error: BaseException) -> int | None:
    """The system's error number, such as errno.ENOSPC."""
    if isinstance(error, OSError):
        return error.errno
    found = _NUMBER.search(str(error)) if from_tensorstore(error) else None
    return None if found is None else int(found[1])


def refused(error: BaseException) -> bool:
    """Whether the system refused to read, as opposed to data that is not there or does not decode."""
    code = number(error)
    return code not in _ABSENT if code is not None else isinstance(error, OSError)


def detail(error: BaseException) -> str:
    """The first line of an error, without TensorStore's own annotations."""
    text = str(error).strip() or type(error).__name__
    text = re.split(r" \[(?:source locations|tensorstore_spec|os_error_code)=|\n", text)[0]
    return text if len(text) <= 2 * _DETAIL_ENDS else f"{text[:_DETAIL_ENDS]} ... {text[-_DETAIL_ENDS:]}"
