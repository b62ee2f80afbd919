"""Benchmarks the figures that the project promises: `python -m tests.benchmarks NAME`."""
