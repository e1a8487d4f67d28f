"""The commands below `ottla sim` and `ottla study`, and what all commands share.

Not: the work itself. A command reads its arguments, calls the packages and prints.
"""
