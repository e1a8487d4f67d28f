"""Errors that can occur while a core is built from a configuration and the state on disk.

Once built, a core raises nothing on input: it ignores or answers input that it cannot use, and its
decisions are values. A broken invariant asserts. After one of these errors nothing has happened: no
input was taken and no message was sent.
"""


class RaftError(Exception):
    """Base of everything this package raises on purpose."""


class InvalidConfigError(RaftError):
    """The caller gave a timeout or limit with which no group can work."""


class CorruptStateError(RaftError):
    """The disk is at fault: what was read cannot be what a core wrote."""
