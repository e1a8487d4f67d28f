"""A run as a trace, each step of which the specification checks while the run goes on.

Not: the rules themselves (`sim/specification`), which know nothing of a run.
"""
