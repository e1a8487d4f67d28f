"""What a turn of a replica is: its inputs (tickets), its machine, and its effects, without I/O.

Not: the driver, which calls turns and carries out their effects (`driver`).
"""
