"""Raft group 0: topics, partitions and producer ids, as all nodes agreed on them, without I/O.

Not: what one partition holds (`partition`), nor how clients ask (`wire`).
"""
