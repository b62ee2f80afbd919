"""Benchmarks: figures that the project promises, measured here and now. `python -m tests.benchmarks NAME`."""
