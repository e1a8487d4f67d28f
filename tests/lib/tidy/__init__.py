"""The project's own lint rules, as a small library.

A rule is a function from one `Source` to the violations in it. `tables` says which modules decide,
and which modules may import what. There is no table of exemptions, on purpose.
"""
