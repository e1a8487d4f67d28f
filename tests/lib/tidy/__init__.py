"""The limits of the house, as a small library.

A rule is a function from one `Source` to the violations in it. `tables` says which modules decide
and who may import what; there is no table of exemptions, on purpose.
"""
