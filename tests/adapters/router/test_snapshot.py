"""The view of a router, whole and brief."""

import attrs

from stablecast.router.snapshot import view_of
from stablecast.router.views import MAX_SHOWN
from stablecast.transports.routing.portals import PortalSettings
from stablecast.transports.routing.router import Router
from stablecast.transports.wire.lbmr import PatternLanguage, TopicQuery, WildcardQuery

CONTEXT = b"instance"


def test_a_brief_view_has_the_figures_without_interest() -> None:
    """The log looks at it every second, however many topics there are."""
    router = Router.create([PortalSettings("left", 1), PortalSettings("right", 2)], 0)
    for index in range(MAX_SHOWN + 1):
        router.portals[0].interest.heard(TopicQuery(f"topic {index}"), CONTEXT, 0)
    router.portals[0].interest.heard(WildcardQuery(PatternLanguage.PCRE, "^o"), CONTEXT, 0)
    router.portals[0].counted.received = 7
    whole, brief = (view_of("edge", router, ["a", "b"], brief=brief).portals[0] for brief in (False, True))
    assert (whole.topics, whole.pcre_patterns, len(whole.interest)) == (MAX_SHOWN + 1, 1, MAX_SHOWN)
    assert whole.received.messages == 7
    assert brief == attrs.evolve(whole, topics=0, pcre_patterns=0, interest=())
