"""The history of a run, one row per event, and how two histories are compared.

Not: who writes it (`world`) and who judges it (`invariants`).
"""
