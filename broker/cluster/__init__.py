"""A whole cluster in one process, with its faults, events and views: what users hold in hands.

Not: anything that a single broker needs.
"""
