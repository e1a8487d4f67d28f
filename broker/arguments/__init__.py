"""What people and programs hand in, checked where it comes in, by tables.

Not: what a log or a client on the wire says (`controller`, `partition`, `wire`).
"""
