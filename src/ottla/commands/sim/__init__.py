"""`ottla sim`: runs, sweeps and what helps to understand them, from the command line."""
