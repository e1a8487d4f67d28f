"""The same decisions under virtual time: the simulator of leader failover.

Kernel, network, disks, clocks, nemesis and checkers drive the unchanged code
of the broker from a seed, so that every run replays.

Empty for now: the simulator is a later issue, this folder holds its place.
"""

if __name__ != "ottla.sim":
    raise ImportError("import me as ottla.sim, not sim")  # pragma: no cover
