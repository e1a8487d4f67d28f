"""Pages that people read: explained runs, sweeps, studies and experiments, as single HTML files.

Not: what is measured. Whoever makes a page hands in the figures.
"""
