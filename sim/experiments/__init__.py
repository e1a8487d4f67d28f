"""Experiments: published figures, measured again, with what makes the difference.

Not: questions of users (`studies`).
"""
