"""Compare what one endpoint's trace shows with the steps of a model's graph.

A trace shows what one endpoint did. A state of a model holds all endpoints at one instant, with messages in flight and
disks. So a trace is compared with a *view* of a state: a part that the records of one endpoint determine, such as one
message number at one store. A view has two sources:

- - The graph of a model that the core is equal to. Every edge, with its states reduced to the view, is a *step*. The
  steps of all configurations that a view may be compared with are collected in `tla/views.json`.
- A trace. Inputs and effects, not the replayed machine, determine the view before and after a record.

A record that changes the view must be a step. A record is *out of bounds* if the model does not cover it: more lives
than it has, another layout of groups, repositories that delete messages. Such a record is reported with its reason and
never called a member.

The condition is necessary, not sufficient: each step is judged by itself, and anything may happen outside the view.
Names do not matter (lives and clients are compared by their relations), nor do absolute numbers.
"""

from stablecast.lab.model.views.edges import TraceView
from stablecast.lab.model.views.recovery import RECEIVER
from stablecast.lab.model.views.registration import CLIENT
from stablecast.lab.model.views.registration_store import HOLDER
from stablecast.lab.model.views.stability import SOURCE
from stablecast.lab.model.views.stability_store import STORE

VIEWS: tuple[TraceView, ...] = (CLIENT, HOLDER, SOURCE, STORE, RECEIVER)
"""All views."""
