"""What goes wrong in a run: programs of faults, drawn and timed.

Not: how a fault is done to a node, a disk or a link (`world`).
"""
