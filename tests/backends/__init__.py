"""Verdicts where people look for them: in the APIs and pages of real backends."""
