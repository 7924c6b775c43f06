"""A lock on a file that another process, or another tape of this one, cannot take meanwhile."""

from __future__ import annotations

import sys
from typing import IO

if sys.platform == "win32":
    import msvcrt

    def lock(file: IO[bytes]) -> bool:
        """Take the lock, which goes when the file is closed. False if another has it."""
        try:
            file.seek(1 << 30)  # far behind what is written, since this lock keeps others from reading, too
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def lock(file: IO[bytes]) -> bool:
        """Take the lock, which goes when the file is closed. False if another has it."""
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True
