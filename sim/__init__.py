"""The same decisions under virtual time: the simulator of leader failover.

Kernel, network, disks, clocks, clients, nemesis and checkers drive the unchanged code of the broker
from a seed, so that every run replays. `world.py` puts the parts together, `run.py` judges a seed.
"""

if __name__ != "ottla.sim":
    raise ImportError("import me as ottla.sim, not sim")  # pragma: no cover
