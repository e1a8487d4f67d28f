"""The event loop, its time and its turns: clocks, timers, slices, threads of clusters.

Not: what is done in a turn. Nothing here knows Kafka or Raft groups.
"""
