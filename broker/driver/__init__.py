"""Carries out the effects of one node's replicas: turns, appends, syncs, messages, deadlines.

Not here: what a turn decides (`turn`, `partition`, `controller`).
"""
