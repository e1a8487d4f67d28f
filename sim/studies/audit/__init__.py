"""An audit: does every producer's sequence lie in the log once, whole and in order?

`sequences` decides, `ledger` keeps what is known over restarts, `job` is the streaming query.
"""
