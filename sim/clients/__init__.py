"""Clients inside the simulator: producers by two libraries' rules, consumers, their mutants.

Not: the nodes that serve them. Clients know of the cluster only what their connections tell.
"""
