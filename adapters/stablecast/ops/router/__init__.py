"""The monitor of a router: pages, JSON and metrics, by the server and the guard of the monitor of stores."""
