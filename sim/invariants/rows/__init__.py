"""The table of invariants by subject; `registry` sorts the rows by their ids."""
