"""A client's registrations with its stores: the rules that sources and receivers share."""
