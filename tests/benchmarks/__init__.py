"""Benchmarks: what the gate costs, beside what others cost for the same spans, measured in the same run.

``python -m tests.benchmarks`` prints all of them, ``--check`` fails where one falls short. Figures of two machines
cannot be compared, ratios of one run can.
"""
