"""What a forked child must do before it goes on."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable


def after_fork(method: Callable[[], None]) -> None:
    """Have a bound method called in every child that is forked, as long as its object lives in the parent."""
    if not hasattr(os, "register_at_fork"):  # Windows has no fork
        return
    reset = weakref.WeakMethod(method)  # what is registered stays for good, so it must not keep the object

    def in_child() -> None:
        alive = reset()
        if alive is not None:
            alive()

    os.register_at_fork(after_in_child=in_child)
