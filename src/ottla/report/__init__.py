"""Pages for people: explained runs, sweeps and studies, as single HTML files.

Not: measuring. The caller passes in the figures.
"""
