"""One broker of the cluster, from its disk to its listener.

Not: how several are put together (`cluster`).
"""
