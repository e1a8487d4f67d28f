"""A second, small model of Raft, in-sync replicas and reads: which steps of a trace it allows.

Not: code that a broker runs, or that this model is compared with; it imports nothing of Ottla.
"""
