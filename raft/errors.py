"""What can go wrong while a core is built from a configuration and a disk.

Once built, a core raises nothing on input: what it cannot use it ignores or answers, and what it
decides is a value. A broken invariant asserts. These errors are definite:
no input was taken, nothing was promised to anyone.
"""


class RaftError(Exception):
    """Base of everything this package raises on purpose."""


class InvalidConfigError(RaftError):
    """The caller's fault: a timeout or limit with which no group could work."""


class CorruptStateError(RaftError):
    """The disk's fault: what it gave back cannot be what a core asked it to keep."""
