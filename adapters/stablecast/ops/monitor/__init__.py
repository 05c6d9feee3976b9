"""Monitor running stores: pages for people, JSON for programs, metrics for Prometheus.

`server` runs the monitor in a thread, and `settings` says where it listens and what it permits. `board` keeps the
newest snapshot of all stores and the history of their sources, and `health` derives findings. `site` answers requests
under the rules of `access`: `pages` (with templates, `pictures` and `figures`), `api`, `metrics` and `directory_jobs`.
"""

from stablecast.ops.monitor.server import Monitor
from stablecast.ops.monitor.settings import MonitorSettings, Permission

__all__ = ["Monitor", "MonitorSettings", "Permission"]
