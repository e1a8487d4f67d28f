"""Everything in a run that could have gone otherwise, drawn from a seed and kept on a tape.

Not: what choices are for. What no seed decides is refused (`outside`).
"""
