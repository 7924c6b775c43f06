"""Clients of the model server."""

from __future__ import annotations

import ssl
from typing import Any, Final

from openai import AsyncOpenAI, DefaultAsyncHttpxClient, DefaultHttpxClient, OpenAI

NO_TLS: Final = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Nothing here speaks TLS, and to load the certificates takes longer than a test."""


def client_of(url: str, **settings: Any) -> OpenAI:
    """Make a client, by default one that never tries twice."""
    transport = DefaultHttpxClient(verify=NO_TLS)
    return OpenAI(**{"base_url": url, "api_key": "-", "max_retries": 0, "http_client": transport, **settings})


def async_client_of(url: str, **settings: Any) -> AsyncOpenAI:
    """Make a client for coroutines, by default one that never tries twice."""
    transport = DefaultAsyncHttpxClient(verify=NO_TLS)
    return AsyncOpenAI(**{"base_url": url, "api_key": "-", "max_retries": 0, "http_client": transport, **settings})
