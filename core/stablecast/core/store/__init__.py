"""The store: its endpoint, and the machines that only the store is made of."""

from stablecast.core.store.endpoint import StoreEndpoint

__all__ = ["StoreEndpoint"]
