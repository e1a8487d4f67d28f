"""Random requests to two brokers: draws them, compares the answers, and shrinks what differs.

Not: a judge of what is right. It only finds where two brokers do not answer the same.
"""
