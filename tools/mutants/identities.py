"""Faults in the identity of sources behind routers: names of hops, places of one source, distant sources of a store."""

from typing import Final

from tools.mutants.mutant import Mutant, Test

PROXIED: Final = "adapters/client/test_proxied_sources.py::"
DISTANT: Final = "adapters/store/test_distant_sources.py::"

IDENTITIES: Final = (
    Mutant(
        "the-name-of-a-hop-is-taken-for-a-life",
        "adapters/client/hop_names",
        "        return hop if known is None else known[0]\n",
        "        return hop\n",
        Test(f"{PROXIED}test_a_message_of_a_source_says_its_life_through_any_router"),
    ),
    Mutant(
        "an-old-otid-is-read-as-a-new-one",
        "transports/codec/places",
        " and not octets[-1]\n",
        " and False\n",
        Test("transports/codec/test_places.py::test_the_otids_of_older_releases_are_understood"),
    ),
    Mutant(
        "the-dearest-place-is-joined",
        "transports/resolution/ways",
        "return min((record for",
        "return max((record for",
        Test(
            "transports/resolution/test_ways.py::test_the_cheapest_place_is_taken_and_then_the_one_with_fewest_routers"
        ),
    ),
    Mutant(
        "each-place-of-a-source-is-joined",
        "transports/resolution/ways",
        "record if taken is None or is_there else",
        "record if True else",
        Test(
            "transports/resolution/test_ways.py::test_the_cheapest_place_is_taken_and_then_the_one_with_fewest_routers"
        ),
    ),
    Mutant(
        "a-place-that-failed-is-joined-again-and-again",
        "transports/resolution/ways",
        "            self.failed[record.name] = None\n",
        "",
        Test("transports/resolution/test_ways.py::test_a_place_whose_stream_ended_is_the_last_choice"),
    ),
    Mutant(
        "a-life-is-heard-at-two-places",
        "adapters/client/subscriber",
        "if session is None or hop != self.names.hop(session.transport, life):",
        "if session is None:",
        Test(f"{PROXIED}test_a_life_is_heard_at_one_place_at_a_time"),
    ),
    Mutant(
        "a-gap-between-two-places-is-passed-over",
        "adapters/client/session",
        "if awaited is not None and 0 < missing < serial.HALF:",
        "if False:",
        Test(f"{PROXIED}test_a_life_is_heard_at_one_place_at_a_time"),
    ),
    Mutant(
        "a-store-keeps-the-names-of-a-hop",
        "adapters/store/arrivals",
        "    if run.topic_index == index:\n",
        "    if True:\n",
        Test("adapters/store/test_arrivals.py::test_what_a_router_repeats_gets_the_names_of_the_life"),
    ),
    Mutant(
        "the-end-of-a-routers-stream-moves-no-store",
        "adapters/store/arrivals",
        "        self.distant.lost(life)\n",
        "",
        Test(f"{DISTANT}test_a_store_goes_on_where_another_router_repeats_the_source[fail]"),
    ),
    Mutant(
        "a-capture-knows-no-routers",
        "adapters/evidence/capture/statements",
        "        life = self.lives.get(hop, hop)\n",
        "        life = hop\n",
        Test(
            "adapters/evidence/capture/test_repeated_sources.py::"
            "test_what_a_router_repeats_is_of_the_life_of_the_source"
        ),
    ),
)
"""Faults in what a source is called, and where it is joined."""
