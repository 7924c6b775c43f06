"""Recorded spans, in a file of any known form, as runs are read from them."""
