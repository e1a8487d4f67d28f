"""A whole cluster in one process, with its faults, events and views: the API for users.

Not: anything that a single broker needs.
"""
