"""The world of a run: nodes on their disks, links and clocks, and who watches them.

Not: clients (`clients`), faults (`nemesis`) and judgement (`invariants`).
"""
