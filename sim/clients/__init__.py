"""Clients inside the simulator: producers by two libraries' rules, consumers, what they are given.

They live in virtual time and know of the cluster only what came over their connections.
"""
