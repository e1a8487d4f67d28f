"""Translates bytes to request values and answer values to bytes. No handler imports it."""
