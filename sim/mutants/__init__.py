"""Mutants: the broker with one safety mechanism switched off, to see whether it is missed."""
