"""Heartbeats per pair of nodes: one small message vouches for any number of Raft groups.

Not: when one is sent (`driver`), nor elections (`ottla.raft`).
"""
