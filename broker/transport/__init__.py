"""How messages get from node to node: one module per way.

Not: which messages (`driver`, `heartbeats`).
"""
