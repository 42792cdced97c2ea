"""Benchmarks: `python -m bench NAME [--quick]` prints a table and writes `bench/results/NAME.json`."""
