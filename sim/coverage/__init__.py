"""What runs reach by chance: scenarios, rules, abstract states, overlaps, durable steps.

Not: whether what happened was right (`invariants`).
"""
