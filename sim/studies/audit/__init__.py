"""An audit: does the log have every producer's sequence once, whole and in order?

`sequences` decides, `ledger` keeps what is known across restarts, `job` is the streaming query.
"""
