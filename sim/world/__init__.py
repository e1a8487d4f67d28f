"""The world of a run: nodes on their disks, links and clocks, and the code that watches them.

Not: clients (`clients`), faults (`nemesis`) and judgement (`invariants`).
"""
