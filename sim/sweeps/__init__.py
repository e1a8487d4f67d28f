"""Many runs: sweeps and their folders, tapes on disk, shrinking, kills of mutants, and
explanations.

Not: one run (`ottla.sim.run`), and what SQL computes from many (`studies`).
"""
