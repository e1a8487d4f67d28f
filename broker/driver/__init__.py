"""Carries out the effects of one node's replicas: turns, appends, syncs, messages, deadlines.

Not: what a turn decides (`turn`, `partition`, `controller`).
"""
