"""The dialect layer: which convention wrote a span, and what the span then means. One file a convention."""

from __future__ import annotations
