"""Faults in domains: what a context learns of its own, the routes to others, and unicast through routers."""

from typing import Final

from tools.mutants.mutant import Mutant, Test

ROUTING: Final = "adapters/runtime/test_routing.py::"
KNOWN: Final = "transports/resolution/udp/test_known_domains.py::"
ENDPOINTS: Final = "adapters/client/test_domains.py::"

DOMAINS: Final = (
    Mutant(
        "a-message-across-domains-is-taken-twice",
        "adapters/runtime/routing",
        "        if not self._is_new(way):\n",
        "        if not self._is_new(way) and not self.domain:\n",
        Test(f"{ROUTING}test_a_repeated_message_is_taken_once"),
    ),
    Mutant(
        "a-stranger-speaks-for-another-domain",
        "adapters/runtime/routing",
        "        if not self.origins.speaks_for(origin, [self.routes[way.origin.domain]], way):\n",
        "        if not self.origins.speaks_for(origin, [], way):\n",
        Test(f"{ROUTING}test_only_the_router_of_the_domain_is_believed"),
    ),
    Mutant(
        "a-near-host-speaks-for-a-far-one",
        "adapters/runtime/origins",
        '    if one.rpartition(":")[0] != other.rpartition(":")[0]:\n        return False\n    if one == other or',
        '    one, other = one.rpartition(":")[2], other.rpartition(":")[2]\n    if one == other or',
        Test(f"{ROUTING}test_a_message_from_another_domain_is_of_a_process_there"),
    ),
    Mutant(
        "what-comes-before-its-route-is-dropped",
        "adapters/runtime/routing",
        "if way is None or (why and (message.payload or not self._may_change(way, why))):",
        "if way is None or why:",
        Test(f"{ROUTING}test_what_comes_before_the_routes_are_known_waits_for_them"),
    ),
    Mutant(
        "what-comes-early-asks-for-no-routers",
        "adapters/runtime/routing",
        "        self._hear_routers()\n        if len(self._early)",
        "        if len(self._early)",
        Test(f"{ROUTING}test_what_comes_before_the_routes_are_known_waits_for_them"),
    ),
    Mutant(
        "a-message-without-a-route-is-lost-in-silence",
        "adapters/runtime/routing",
        "            lost[one.address] = None\n",
        "            del one\n",
        Test(f"{ROUTING}test_a_message_without_a_route_counts_as_lost_in_the_end"),
    ),
    Mutant(
        "the-first-message-does-not-wait-for-a-route",
        "adapters/runtime/routing",
        "        self._waiting.append(_Waiting(loop.time() + WAIT_SECONDS, address, data))\n",
        '        self._waiting.append(_Waiting(loop.time() + WAIT_SECONDS, address, b""))\n',
        Test(f"{ENDPOINTS}test_the_first_registration_waits_for_the_domain_and_the_route"),
    ),
    Mutant(
        "the-end-of-a-router-is-no-break-behind-it",
        "adapters/runtime/connection_pool",
        "        for one in (address, *self.routing.behind(address)):\n            self._held",
        "        for one in (address,):\n            self._held",
        Test(f"{ROUTING}test_the_end_of_the_connection_to_a_router_is_a_break_for_all_behind_it"),
    ),
    Mutant(
        "an-announcement-names-no-domains",
        "adapters/client/sender",
        "codec.encode(outbound(message, domain))",
        "codec.encode(outbound(message, 0))",
        Test(f"{ENDPOINTS}test_the_domains_of_announced_stores_are_those_of_the_source"),
    ),
    Mutant(
        "an-answer-stays-in-the-domain-of-the-store",
        "transports/codec/decoding",
        '    return join_domain(_origin(message), f"{host}:{port}")\n',
        '    return f"{host}:{port}"\n',
        Test("transports/test_codec.py::test_the_domains_of_addresses_survive_the_wire"),
    ),
    Mutant(
        "the-last-number-of-a-domain-counts",
        "transports/resolution/udp/known_domains",
        "        if not self.number:\n",
        "        if not self.options.number and number != self.number:\n",
        Test(f"{KNOWN}test_the_first_number_stays_and_others_are_reported_once"),
    ),
    Mutant(
        "anybody-names-the-domain",
        "transports/resolution/udp/known_domains",
        "        if not number or not (router or self.options.handed_on):\n",
        "        if not number:\n",
        Test(f"{KNOWN}test_by_default_only_routers_are_believed"),
    ),
    Mutant(
        "a-route-never-ends",
        "transports/resolution/udp/known_domains",
        "            if now < due:\n",
        "            if now <= due:\n",
        Test(f"{KNOWN}test_routes_are_repeated_replaced_and_lost"),
    ),
    Mutant(
        "any-context-tells-routes",
        "transports/resolution/udp/context",
        "port=port) if by_router:",
        "port=port):",
        Test(f"{KNOWN}test_a_context_learns_routes_from_routers_only"),
    ),
    Mutant(
        "a-service-keeps-the-routes-of-a-lost-router",
        "transports/resolution/srs/service",
        "            if self.routers.lost(client.instance, now) and self.config.route_lifetime_ns:\n",
        "            if self.routers.lost(client.instance, now) and not self.config.route_lifetime_ns:\n",
        Test("transports/resolution/srs/test_routers.py::test_routes_of_a_lost_router_end_after_their_lifetime"),
    ),
    Mutant(
        "any-client-of-a-service-is-a-router",
        "transports/resolution/srs/service",
        "srs.RouteEnd() if session.router:",
        "srs.RouteEnd():",
        Test("transports/resolution/srs/test_routers.py::test_only_routers_tell_domains_and_routes"),
    ),
    Mutant(
        "a-hop-is-not-counted",
        "transports/codec/routed",
        "    return data[:at] + (hops + 1).to_bytes(2) + data[at + 2 :]\n",
        "    return data\n",
        Test("transports/codec/test_routed.py::test_a_message_that_runs_in_a_circle_ends"),
    ),
    Mutant(
        "a-store-has-said-only-what-its-traces-show",
        "adapters/evidence/trace/cross_rules",
        " and told.fact.last <= 1)",
        ")",
        Test(
            "adapters/evidence/trace/test_cross_rules.py"
            "::test_a_store_that_was_started_before_its_only_trace_may_have_said_anything"
        ),
    ),
    Mutant(
        "a-trace-of-another-domain-names-other-stores",
        "adapters/evidence/trace/facts",
        "        peer = split_domain(peer)[1]\n",
        "",
        Test(f"{ENDPOINTS}test_traces_of_both_domains_are_judged_together"),
    ),
    Mutant(
        "a-capture-counts-a-message-on-each-hop",
        "adapters/evidence/capture/statements",
        "        if way.stream is not None and not self._is_new(way.stream):\n",
        "        if way.stream is None:\n",
        Test("adapters/evidence/capture/judge/test_domains.py"),
    ),
)
