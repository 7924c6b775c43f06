"""A decision that was made, between the moment when it is and the one when it is known what came of it."""

from __future__ import annotations

from abc import ABC, abstractmethod

from spangate.tape._outcomes import Outcome


class Pending(ABC):
    """A decision that was made. What comes of it is known already, or it is told when it is.

    Attributes:
        key: Its key.
        outcome: What came of it when it was recorded; None while it is being recorded.
    """

    key: str
    outcome: Outcome | None

    @abstractmethod
    def observed(self, outcome: Outcome) -> None:
        """Keep what came of it. Nothing happens where it is known already."""
