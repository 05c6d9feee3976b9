"""Faults in a router: interest, proxies, streams, queues, unicast, and a second router."""

from typing import Final

from tools.mutants.mutant import Mutant, Test

INTEREST: Final = "transports/routing/test_interest.py::"
ROUTER: Final = "transports/routing/test_router.py::"
FORWARDING: Final = "transports/routing/test_forwarding.py::"
DAEMON: Final = "adapters/router/test_daemon.py::"

ROUTING: Final = (
    Mutant(
        "interest-is-counted",
        "transports/routing/interest",
        "            found.holders[holder] = None\n",
        "            found.holders[holder + bytes((len(found.holders),))] = None\n",
        Test(f"{INTEREST}test_the_last_leave_ends_the_interest_at_once"),
    ),
    Mutant(
        "an-answer-renews-no-lease",
        "transports/routing/interest",
        "        found.asked, found.due = 0, now + self._times(query).interval\n",
        "        found.asked, found.due = found.asked, max(found.due, 1) if found.due else now + 300 * SECOND\n",
        Test(f"{INTEREST}test_an_answer_renews_the_lease"),
    ),
    Mutant(
        "the-leave-of-one-of-many-ends-interest",
        "transports/routing/interest",
        "        if known and not found.holders and not found.crowded and not found.told:\n",
        "        if known and not found.crowded and not found.told:\n",
        Test(f"{INTEREST}test_the_last_leave_ends_the_interest_at_once"),
    ),
    Mutant(
        "questions-know-no-limit",
        "transports/routing/interest",
        "        while self.waiting and self.limiter.admits(now):\n",
        "        while self.waiting:\n",
        Test(f"{INTEREST}test_ten_thousand_topics_take_twenty_seconds"),
    ),
    Mutant(
        "what-routers-ask-for-is-interest",
        "transports/routing/router",
        "            self._on_router(number, instance, now)\n            return",
        "            self._on_router(number, instance, now)",
        Test(f"{ROUTER}test_what_another_router_asks_for_is_no_interest"),
    ),
    Mutant(
        "a-service-tells-what-routers-want",
        "transports/resolution/srs/service",
        "any(not self.clients[one].router for one in",
        "any(self.clients[one] for one in",
        Test("transports/resolution/srs/test_told_interest.py::test_what_routers_want_is_no_interest"),
    ),
    Mutant(
        "a-proxy-is-a-source",
        "transports/routing/sources",
        "            if proxy is None or proxy.told is not None or proxy.names != (record.session_id, record.index):\n",
        "            if True:\n",
        Test(f"{ROUTER}test_the_proxy_itself_is_no_source"),
    ),
    Mutant(
        "a-source-without-an-identity-is-repeated",
        "transports/routing/sources",
        "        if not record.origin:\n",
        "        if not record.address:\n",
        Test(f"{ROUTER}test_a_source_without_an_identity_is_never_repeated"),
    ),
    Mutant(
        "a-lost-source-ends-at-once",
        "transports/routing/sources",
        "            self.agenda.arm((Matter.LOST, 0, source.origin), now + delay)\n",
        "            self.agenda.arm((Matter.LOST, 0, source.origin), now + delay // 2)\n",
        Test(f"{ROUTER}test_a_lost_source_keeps_its_proxies_for_a_while"),
    ),
    Mutant(
        "a-proxy-leads-to-the-portal-of-entry",
        "transports/routing/sources",
        "wanted = number != source.portal and self.network",
        "wanted = self.network",
        Test(f"{ROUTER}test_a_source_is_not_repeated_where_it_came_in"),
    ),
    Mutant(
        "a-mark-overtakes-its-data",
        "transports/routing/queues",
        "not self.held and (found is None or not (found.closed or found.blocks))",
        "not self.held and (found is None or not found.closed)",
        Test("transports/routing/test_queues.py::test_nothing_passes_what_waits"),
    ),
    Mutant(
        "the-standing-overtakes-the-queue",
        "transports/routing/streams",
        " or not self.portals[portal].queues.passes(origin):",
        ":",
        Test(f"{ROUTER}test_a_number_does_not_overtake_the_data_that_waits"),
    ),
    Mutant(
        "a-queue-outlives-its-proxy",
        "transports/routing/sources",
        "        proxy = source.proxies.pop(number)\n        self.portals[number].queues.forget(source.origin)\n",
        "        proxy = source.proxies.pop(number)\n",
        Test(f"{ROUTER}test_what_waits_goes_with_its_proxy"),
    ),
    Mutant(
        "a-flood-drops-the-messages-of-others",
        "transports/routing/queues",
        "            self._drop(max(self.queues.values(), key=lambda one: one.size))\n",
        "            self._drop(min((one for one in self.queues.values() if one.size), key=lambda one: one.size))\n",
        Test("transports/routing/test_queues.py::test_the_newest_of_the_largest_source_is_dropped"),
    ),
    Mutant(
        "a-message-that-does-not-fit-is-sent",
        "transports/routing/pieces",
        "        if length > most:\n",
        "        if length > 3 * most:\n",
        Test(f"{ROUTER}test_a_message_that_fits_no_datagram_is_counted"),
    ),
    Mutant(
        "an-announcement-keeps-the-names-of-the-hop-before",
        "transports/codec/renamed",
        "            return attrs.evolve(header, tidx=index)\n",
        "            return header\n",
        Test(f"{ROUTER}test_announcements_go_on_and_greet_who_joins_later"),
    ),
    Mutant(
        "an-announcement-names-no-domain",
        "transports/routing/streams",
        "                source.info = message = with_domain(message, self._domain_of(source))\n",
        "                source.info = message\n",
        Test(f"{ROUTER}test_an_announcement_names_the_domain_of_its_source"),
    ),
    Mutant(
        "any-host-speaks-for-another-through-a-router",
        "transports/routing/forwarding",
        "        if way.origin.domain != domain:\n",
        "        if not domain:\n",
        Test(f"{FORWARDING}test_an_origin_in_another_domain_is_not_believed"),
    ),
    Mutant(
        "two-routers-forward-beside-each-other",
        "transports/routing/router",
        "        if portal.standing is not Standing.LISTENS:\n",
        "        if portal.standing is Standing.FORWARDS:\n",
        Test(f"{ROUTER}test_the_later_of_two_routers_stands_aside"),
    ),
    Mutant(
        "the-answer-of-a-store-names-no-domain",
        "transports/routing/router",
        "answers(packet, domain):",
        "answers(packet, 0):",
        Test("transports/routing/test_names.py::test_an_answer_goes_to_those_who_asked_with_the_domain_of_the_store"),
    ),
    Mutant(
        "a-receiver-takes-no-leave",
        "transports/resolution/udp/context",
        "        if not self.routed or self.router:\n",
        "        if self.routed or self.router:\n",
        Test(
            "transports/resolution/udp/test_router_context.py::test_a_receiver_that_is_deleted_takes_leave_where_a_router_is"
        ),
    ),
    Mutant(
        "a-router-ends-in-silence",
        "adapters/router/portal",
        "at_end=True",
        "at_end=False",
        Test(f"{DAEMON}test_a_router_that_ends_takes_leave"),
    ),
)
