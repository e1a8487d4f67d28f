"""What goes wrong in a run: programs of faults, drawn and timed."""
