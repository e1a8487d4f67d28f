"""Kafka's semantics of one partition on top of an agreed log, without I/O.

Not: where partitions lie and who may ask (`controller`, `node`, `wire`).
"""
