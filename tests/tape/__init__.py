"""Decisions recorded and replayed."""
