"""Compares brokers: the same cases, byte for byte, to two of them, and where the answers differ.

Not: a client. Nothing is retried, and nothing is sent that a case does not name.
"""
