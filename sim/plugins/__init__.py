"""What a user adds to the simulator in a Python file: invariants, faults, mutants and clients.

Not: those that come with Ottla.
"""
