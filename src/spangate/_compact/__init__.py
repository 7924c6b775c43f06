"""The compact form of a span: what happened stays, what was said is replaced by hashes; and the hashes of a whole run.

Payloads are what :mod:`spangate._compact.names` names. In the place of a payload under ``key`` stand
``spangate.payload_sha256.<key>`` and ``spangate.payload_schema.<key>``, and where raw payloads are kept,
``spangate.payload_raw_sha256.<key>``. The hashes stand below names of their own, not behind the payload's, so that no
key is a namespace as well: ``gen_ai.prompt`` is a key, and ``gen_ai.prompt.payload_sha256`` would lie below it.
"""
