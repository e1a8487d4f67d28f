"""Many runs: sweeps and their folders, tapes on disk, shrinking, kills of mutants, and why.

Not: one run (`ottla.sim.run`), and what SQL makes of many (`studies`).
"""
