"""One broker of the cluster, from its disk to its listener.

Not: a cluster of several nodes (`cluster`).
"""
