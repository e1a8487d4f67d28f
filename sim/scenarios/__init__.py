"""Named scenarios: transcripts over a simulated world (`script.py` has the language).

Not: random faults (`nemesis`).
"""
