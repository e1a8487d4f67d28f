"""How every run ends: faults stop, and then everything has to come right within a bound.

Not: what is judged afterwards (`invariants`).
"""
