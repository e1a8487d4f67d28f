"""What a turn of a replica is: its inputs (tickets), its machine, and its effects, without I/O.

Not: who gives it a turn and carries its effects out (`driver`).
"""
