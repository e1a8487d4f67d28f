"""This machine: its files, its processes and its Pythons.

Not: anything of a simulated run, which sees none of them.
"""
