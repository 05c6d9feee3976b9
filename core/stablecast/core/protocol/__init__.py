"""The protocol's vocabulary: messages, inputs, effects, events, settings, quorum rules, histories of lives."""
