"""The store's monitor: what goes on in running stores, as pages, as JSON and for Prometheus.

`settings` says where it listens and who may do what, `server` is the thread it runs in, `board` the newest look at all
stores, `rows` what is kept of their sources, `health` what is said of them. `site` answers requests under the rules of
`guard`: `pages` (from templates, `shapes`, `spans` and `wording`), `api`, `metrics`, and `errands` that take long.
"""

from stablecast.ops.monitor.server import Monitor
from stablecast.ops.monitor.settings import MonitorSettings, Permission

__all__ = ["Monitor", "MonitorSettings", "Permission"]
