"""The ledger of calls that tools were given: its file, its rows, and what is written and read there."""
