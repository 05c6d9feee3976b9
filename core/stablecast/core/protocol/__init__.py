"""The vocabulary of the endpoints: messages, inputs, effects, events, settings, and the rules that they share."""
