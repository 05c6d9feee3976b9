"""A receiver of a topic: which lives of its sources it follows, and what each session inherits from those before."""
