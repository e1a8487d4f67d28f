"""`Notices`: tells the rest of a node what the turns of its replicas have changed.

The runner calls `after_turn` after each turn. It reports changes to the heartbeats, to the
`DeadlineWatch`, and to the node; watchers (`Runner.watch`) hear them before the node does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ottla.broker.driver.deadlines import GLANCE, DeadlineWatch
from ottla.broker.driver.hosted import HostedReplica, tell_whether_it_leads, unheard
from ottla.broker.heartbeats.heartbeats import Heartbeats
from ottla.broker.turn.watcher import Watcher, told_first
from ottla.raft.roles import Role
from ottla.raft.types import Entry, Micros


class Notices:
    """See the module's docstring. One per runner."""

    def __init__(self, beats: Heartbeats, deadlines: DeadlineWatch):
        self._beats = beats
        self._deadlines = deadlines
        self.on_role: Callable[[HostedReplica], None] = unheard
        self.on_applied: Callable[[HostedReplica], None] = unheard
        self.on_dropped: Callable[[HostedReplica, Sequence[Entry]], None] = unheard
        """Called if entries of a newer leader replaced these entries."""

    def report_to(
        self, role: Callable[[HostedReplica], None], applied: Callable[[HostedReplica], None]
    ) -> None:
        """Set the functions to call when a role, term or leader changed, and when more is
        applied."""
        self.on_role, self.on_applied = role, applied

    def watch(self, watcher: Watcher) -> None:
        """Report changes of the replicas to `watcher`, from now on."""
        self.on_role = told_first(watcher.role_changed, self.on_role)
        self.on_applied = told_first(watcher.applied, self.on_applied)
        self.on_dropped = told_first(watcher.dropped, self.on_dropped)

    def after_turn(self, hosted: HostedReplica, now: Micros) -> bool:
        """Report what a turn changed. True: the time of the replica's look changed."""
        if hosted.gone:
            return False
        replica = hosted.replica
        if replica.soft is not hosted.soft:
            self._role_moved(hosted)
        if hosted.leads and hosted.commit != (commit := replica.core.commit):
            hosted.commit = commit
            self._beats.committed(hosted.group, commit, replica.core.commit_known_to)
        if replica.applied != hosted.applied:
            # This is not the commit index: after a restart, entries are read before they are
            # applied, so they are applied in a later turn.
            hosted.applied = replica.applied
            self.on_applied(hosted)
        if hosted.urgent and hosted.leads:
            self._beats.urgent(hosted.group)
        if now < hosted.look_at <= now + GLANCE:
            return False
        return self._deadlines.after_turn(hosted, now)

    def _role_moved(self, hosted: HostedReplica) -> None:
        """Role, term or known leader have changed since the last turn."""
        hosted.soft = soft = hosted.replica.soft
        hosted.leads = soft.role is Role.LEADER
        self._deadlines.doubt(hosted)
        tell_whether_it_leads(hosted, self._beats)
        self.on_role(hosted)
        if soft.term != hosted.term:
            hosted.term = soft.term
            self._beats.term_moved(hosted.group)
