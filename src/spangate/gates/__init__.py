"""The gates: pure rules from a run to findings, one file each."""
