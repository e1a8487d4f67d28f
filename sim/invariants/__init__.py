"""The judge: what must hold in every run, as Python and as SQL over its history.

`registry.py` is the table of invariants, `judge.py` applies it.

Not: a database: nothing here imports one.
"""
