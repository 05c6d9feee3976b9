"""The room of the store: its endpoint, and the machines that only it is made of."""

from stablecast.core.store.endpoint import StoreEndpoint

__all__ = ["StoreEndpoint"]
