"""Clients inside the simulator: producers by two libraries' rules, consumers, their mutants.

Not: what serves them. They know of the cluster only what came over their connections.
"""
