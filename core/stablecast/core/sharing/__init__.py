"""Work sharing: the members of a group divide the messages of a topic among themselves."""
