"""Mutants: the broker with one safety mechanism switched off, to see whether it is missed.

Not: who counts the runs until it is (`sweeps`), nor mutants of clients (`clients`).
"""
