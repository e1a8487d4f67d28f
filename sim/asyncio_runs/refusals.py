"""What the deterministic loop refuses: everything whose outcome no seed decides.

A refusal is an exception that names the call site in the program. It is also recorded as a failure
of the run, so a program that swallows it fails anyway.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from ottla.sim.chance.outside import RefusedError, call_site


def _refused(what: str) -> Any:
    """A method of the loop that is refused."""

    def method(self: Refusals, *_: Any, **__: Any) -> Any:
        raise self.refuse(what)

    return method


class Refusals(asyncio.AbstractEventLoop):
    """The methods of a loop that this one lacks, each with what it would do."""

    noticed: Callable[[RefusedError], None]
    """Called with every refusal."""

    def refuse(self, what: str) -> RefusedError:
        """The exception to raise; the run has failed with this call."""
        error = RefusedError(f"{what} is refused under the deterministic loop, at {call_site()}")
        self.noticed(error)
        return error

    add_reader: Any = _refused("add_reader (a file descriptor)")
    remove_reader: Any = _refused("remove_reader (a file descriptor)")
    add_writer: Any = _refused("add_writer (a file descriptor)")
    remove_writer: Any = _refused("remove_writer (a file descriptor)")
    sock_recv: Any = _refused("sock_recv (a real socket)")
    sock_recv_into: Any = _refused("sock_recv_into (a real socket)")
    sock_recvfrom: Any = _refused("sock_recvfrom (a real socket)")
    sock_recvfrom_into: Any = _refused("sock_recvfrom_into (a real socket)")
    sock_sendall: Any = _refused("sock_sendall (a real socket)")
    sock_sendto: Any = _refused("sock_sendto (a real socket)")
    sock_connect: Any = _refused("sock_connect (a real socket)")
    sock_accept: Any = _refused("sock_accept (a real socket)")
    sock_sendfile: Any = _refused("sock_sendfile (a real socket)")
    sendfile: Any = _refused("sendfile (a file)")
    start_tls: Any = _refused("start_tls (TLS)")
    connect_accepted_socket: Any = _refused("connect_accepted_socket (a real socket)")
    create_unix_connection: Any = _refused("create_unix_connection (a real socket)")
    create_unix_server: Any = _refused("create_unix_server (a real socket)")
    create_datagram_endpoint: Any = _refused("create_datagram_endpoint (UDP)")
    connect_read_pipe: Any = _refused("connect_read_pipe (a pipe)")
    connect_write_pipe: Any = _refused("connect_write_pipe (a pipe)")
    subprocess_shell: Any = _refused("subprocess_shell (a process)")
    subprocess_exec: Any = _refused("subprocess_exec (a process)")
    add_signal_handler: Any = _refused("add_signal_handler (a signal)")
    remove_signal_handler: Any = _refused("remove_signal_handler (a signal)")
    getaddrinfo: Any = _refused("getaddrinfo (DNS)")
    getnameinfo: Any = _refused("getnameinfo (DNS)")
    set_default_executor: Any = _refused("set_default_executor (threads)")
