"""What of a model one endpoint's trace shows, and the steps that the model's graph has of it.

A trace tells what one endpoint did; the state of a model is of all of them at one instant, with what is under way and
on disk. So a trace is not laid beside a whole state but beside a *view* of it: a part that the records of one endpoint
tell by themselves, such as one message number at one store. A view is cut from both sides:

* of the graph of a model that the core is equal to: every edge, with its states cut down to the view, is a *step*. The
  steps of all configurations that a view may be compared with are put together (`tla/views.json`).
* of a trace: inputs and effects, not the replayed machine, say what the view was before a record and is after it.

A record that changes the view must be a step. What the model does not have (more lives than it names, another layout of
groups, repositories that let go of messages) is *out of bounds*: told with its reason, and never called a member.

It is a necessary condition: a run that is one of the model passes; one that passes need not be one, for each step is
judged by itself and what is outside of the view may be anything. Names do not matter (lives and clients count by what
they are to each other), nor which number it is.
"""

from stablecast.lab.model.views.edges import View
from stablecast.lab.model.views.recovery import RECEIVER
from stablecast.lab.model.views.registration import CLIENT
from stablecast.lab.model.views.registration_store import HOLDER
from stablecast.lab.model.views.stability import SOURCE
from stablecast.lab.model.views.stability_store import STORE

VIEWS: tuple[View, ...] = (CLIENT, HOLDER, SOURCE, STORE, RECEIVER)
"""All there are."""
