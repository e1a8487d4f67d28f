"""Details of a run that its history lacks, collected while the run is repeated.

Not: pages made of it (`ottla.report`).
"""
