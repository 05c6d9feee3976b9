"""The receiver: its session with one life of a source, and the machines that only the session is made of."""

from stablecast.core.receiver.endpoint import RECEIVER, ReceiverChart, ReceiverSession, ReceiverState, ReceiverStep

__all__ = ["RECEIVER", "ReceiverChart", "ReceiverSession", "ReceiverState", "ReceiverStep"]
