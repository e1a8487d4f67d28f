"""What a run is: one frozen value, read from TOML, told on a command line or drawn by the swarm.

Not: what the run does with it.
"""
