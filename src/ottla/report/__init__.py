"""Pages that people read: explained runs, sweeps and studies, as single HTML files.

Not: what is measured. Whoever makes a page hands in the figures.
"""
