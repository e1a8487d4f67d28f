"""How every run ends: faults stop, and then everything must recover within a bound.

Not: what is judged afterwards (`invariants`).
"""
