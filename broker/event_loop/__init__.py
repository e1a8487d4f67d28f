"""The event loop: its clocks, its timers, long work in slices, and threads that run a loop.

Not: what is done in a turn. Nothing here knows Kafka or Raft groups.
"""
