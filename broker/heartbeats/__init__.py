"""Heartbeats per pair of nodes: one small message vouches for any number of Raft groups.

Not: the times at which they are sent (`driver`), nor elections (`ottla.raft`).
"""
