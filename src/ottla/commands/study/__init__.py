"""`ottla study`: many runs as a data pipeline, from the command line."""
