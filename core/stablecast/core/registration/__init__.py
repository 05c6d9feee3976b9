"""Registration of a client with its stores: one store, all of them, and the deprecated round robin."""
