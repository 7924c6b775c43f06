"""Data in a page as JSON that no text in it can break out of, and a policy that lets the page load nothing."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable
from typing import Any, Final

from markupsafe import Markup

_SIGNS: Final = str.maketrans({"<": r"\u003c", ">": r"\u003e", "&": r"\u0026"})


def as_data(value: Any) -> Markup:
    """Write a value as JSON for a ``script`` element of data: ASCII, with no sign in it that means a thing in HTML."""
    written = json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return Markup(written.translate(_SIGNS))  # noqa: S704  no sign of HTML is left in it


def content_policy(scripts: Iterable[str], styles: Iterable[str]) -> str:
    """Return a Content-Security-Policy under which these texts alone act, and nothing is loaded or sent."""
    parts = {
        "default-src": ["'none'"],
        "script-src": map(_source, scripts),
        "style-src": map(_source, styles),
        "img-src": ["data:"],
        "base-uri": ["'none'"],
        "form-action": ["'none'"],
    }
    return "; ".join(f"{name} {' '.join(allowed)}" for name, allowed in parts.items())


def _source(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
