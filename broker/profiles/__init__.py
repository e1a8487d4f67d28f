"""Profiles: one value that says whose behaviour a cluster shows, in all rooms.

Not: what a switch does (the room that asks for it), nor the rules themselves (`idempotency`).
"""
