"""Benchmarks with targets: `make bench`, or `python -m benchmarks --help`."""
