"""Mutants: the broker with one safety mechanism switched off, to see whether that is detected.

Not: how many runs that takes (`sweeps`), nor mutants of clients (`clients`).
"""
