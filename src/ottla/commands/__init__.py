"""The commands below `ottla sim` and `ottla study`, and what all commands share.

Not: what they do: they read arguments, call the packages and print.
"""
