"""How messages get from node to node: one module per way.

Not: the messages (`driver`, `heartbeats`).
"""
