"""Raft group 0: topics, partitions and producer ids, as all nodes agreed on them, without I/O.

Not: the content of a partition (`partition`), nor the requests of clients (`wire`).
"""
