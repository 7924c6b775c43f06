"""Two runs side by side: whether they may be compared, and what changed between them."""

from spangate.compare._generations import REASONS, Comparison, Pair, compare

__all__ = ["REASONS", "Comparison", "Pair", "compare"]
