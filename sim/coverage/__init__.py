"""What runs reach: named scenarios that came about by chance, rules, and abstract states.

Not: whether it was right (`invariants`).
"""
