"""The bench: load generator, servers to measure, and one module per group of targets."""
