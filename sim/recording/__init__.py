"""What a history does not say of a run, collected while it is done once more.

Not: pages made of it (`ottla.report`).
"""
