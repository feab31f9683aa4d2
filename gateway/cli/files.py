"""Replaces a file as a whole: whoever reads it sees the old text or the new one, never a part."""

import contextlib
import errno
import os
import stat
import tempfile
from pathlib import Path
from typing import Final

_NEW: Final = 0o644


def replace_whole(path: Path, content: bytes) -> None:
    """Writes `content` in the place of the file, if there is one; a link stays one, and its target is replaced.

    Permissions stay, and the owner too as far as this process may give files away. A new file gets what the umask
    leaves of rw-r--r--.

    Raises:
        OSError: it cannot be written; the old file is untouched.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file() and not target.is_dir():
        raise OSError(errno.EINVAL, "no plain file stands there, and a device or a pipe is not replaced", str(path))
    number, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".new")
    new = Path(name)
    try:
        with os.fdopen(number, "wb") as file:
            file.write(content)
            file.flush()
            _as_before(target, file.fileno())
            os.fsync(file.fileno())
        new.replace(target)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
    _settle(target.parent)


def put_back(path: Path, content: bytes | None) -> None:
    """Makes the file what it was before `replace_whole`; None: there was none."""
    if content is None:
        Path(os.path.realpath(path)).unlink(missing_ok=True)
    else:
        replace_whole(path, content)


def _as_before(target: Path, number: int) -> None:
    try:
        before = target.stat()
    except FileNotFoundError:
        umask = os.umask(0)
        os.umask(umask)
        os.fchmod(number, _NEW & ~umask)
        return
    with contextlib.suppress(PermissionError):
        os.fchown(number, before.st_uid, before.st_gid)
    os.fchmod(number, stat.S_IMODE(before.st_mode))


def _settle(folder: Path) -> None:
    """Has the folder's own entry written to the disk; some file systems cannot, which does no harm."""
    with contextlib.suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
