"""What runs reach: named scenarios that came about by chance, rules, and abstract states.

Not: whether what happened was right (`invariants`).
"""
