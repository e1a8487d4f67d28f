"""What a run is: one frozen value, read from TOML, given on a command line or drawn by the swarm.

Not: what the run does with it.
"""
