"""A deterministic asyncio loop: real servers and clients under virtual time, by a seed.

Not: the kernel of plain runs (`world`).
"""
