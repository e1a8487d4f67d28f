"""`ottla sim`: commands for simulated runs and sweeps, and to understand them."""
