"""The gate under real frameworks and instrumentations, through its front door."""

import pytest

pytest.register_assert_rewrite("tests.frameworks.gated")
