"""Settings of all tests."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# How fast a machine is proves nothing about a law; a loaded one draws its first example slowly.
settings.register_profile("laws", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("laws")
