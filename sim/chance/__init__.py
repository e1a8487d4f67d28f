"""Everything in a run that could have gone otherwise, drawn from a seed and kept on tape.

Not: what chance is asked for. Whatever no seed decides is refused (`outside`).
"""
