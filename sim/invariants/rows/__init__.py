"""The table of invariants by subject; `registry` puts the rows in order of their ids."""
