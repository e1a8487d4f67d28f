"""Kafka's semantics of one partition on top of an agreed log, without I/O.

Not: on which nodes a partition is, and who may ask it (`controller`, `node`, `wire`).
"""
