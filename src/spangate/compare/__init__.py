"""Two runs side by side: whether they may be compared, and what changed between them."""

from spangate.compare._changes import Change, Difference
from spangate.compare._diff import diff
from spangate.compare._generations import REASONS, Comparison, Pair, compare
from spangate.compare._rules import Allowance, Rules

__all__ = ["REASONS", "Allowance", "Change", "Comparison", "Difference", "Pair", "Rules", "compare", "diff"]
