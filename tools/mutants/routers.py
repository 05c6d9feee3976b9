"""Faults of routers: in the machine, in the layer of unicast, in the files, checks and pages."""

from typing import Final

from tools.mutants.mutant import Mutant, Test

_FILES = "adapters/router/test_router_files.py"
_CHECKS = "adapters/router/test_router_checks.py"
_MACHINE = "transports/routing/test_router.py"
_WORLDS = "adapters/lab/whole/test_found.py::test_a_schedule_that_found_a_defect_is_clean"

ROUTERS: Final = (
    Mutant(
        "a-router-asks-once-more-than-it-may",
        "transports/routing/interest",
        "elif found.asked == self._times(query).tries:",
        "elif found.asked > self._times(query).tries:",
        Test("transports/routing/test_interest.py::test_a_receiver_that_died_is_forgotten_after_315_seconds"),
    ),
    Mutant(
        "a-window-passes-numbers-twice",
        "transports/routing/duplicates",
        "new = self.seen.add(max(start, self.base), stop)",
        "new = [(max(start, self.base), stop)]",
        Test(f"{_MACHINE}::test_a_number_passes_once"),
    ),
    Mutant(
        "what-waits-of-a-closed-proxy-stays",
        "transports/routing/queues",
        "        if queue is not None:\n            self.size -= queue.size\n",
        "        if queue is None:\n            self.size = 0\n",
        Test("transports/routing/test_queues.py::test_a_closed_proxy_leaves_nothing"),
    ),
    Mutant(
        "a-list-accepts-what-no-entry-names",
        "transports/routing/access",
        "            return entry.accept\n    return False\n",
        "            return entry.accept\n    return True\n",
        Test("transports/routing/test_access.py::test_a_list_rejects_what_no_entry_applies_to"),
    ),
    Mutant(
        "a-message-runs-on-in-a-circle",
        "transports/routing/forwarding",
        "        if way.hops >= MAX_HOPS:\n            return UnicastDrop.HOPS\n",
        "",
        Test("transports/routing/test_forwarding.py::test_why_a_message_goes_no_further"),
    ),
    Mutant(
        "a-domain-is-learnt-from-anybody",
        "transports/resolution/udp/known_domains",
        "if not number or not (router or self.options.handed_on):",
        "if not number:",
        Test("transports/resolution/udp/test_known_domains.py::test_by_default_only_routers_are_believed"),
    ),
    Mutant(
        "the-first-messages-wait-for-no-route",
        "adapters/runtime/routing",
        "WAIT_SECONDS = 10.0\n",
        "WAIT_SECONDS = 0.0\n",
        Test("adapters/client/test_domains.py::test_the_first_registration_waits_for_the_domain_and_the_route"),
    ),
    Mutant(
        "the-files-of-options-override-the-router's",
        "adapters/router/router_files",
        "        layers.append(ConfigLayer(str(self.path), tuple(self._own_options(element))))\n",
        "        layers.insert(0, ConfigLayer(str(self.path), tuple(self._own_options(element))))\n",
        Test(f"{_FILES}::test_the_order_of_options"),
    ),
    Mutant(
        "a-router-keeps-a-dead-source-alive",
        "adapters/store/arrivals",
        "            if self._announced.get(life) == message:\n",
        "            if message is None:\n",
        Test("adapters/router/test_elections.py::test_stores_of_two_domains_elect_one_proxy[lbtrm-2-False]"),
    ),
    Mutant(
        "routes-are-said-to-heal-at-once",
        "adapters/router/checks",
        "    if 0 < timeout_ns <= longest:\n",
        "    if 0 < timeout_ns <= 0:\n",
        Test(f"{_CHECKS}::test_activity_timeouts_outlast_the_healing_of_routes"),
    ),
    Mutant(
        "a-source-without-identity-is-no-finding",
        "adapters/ops/router/health",
        "    if portal.unidentified:\n",
        "    if False:\n",
        Test("adapters/ops/router/test_router_site.py::test_what_should_stay_zero_is_a_finding"),
    ),
    Mutant(
        "a-router-ends-without-leave",
        "adapters/cli/router",
        "        stack.push_async_callback(router.close)\n",
        "",
        Test("adapters/cli/test_router.py::test_ready_and_stopped_by_a_signal"),
    ),
    Mutant(
        "a-mark-overtakes-the-data-that-waits",
        "transports/routing/streams",
        "        if portal.queues.passes(origin):\n            self._leave(",
        "        if not block.count or portal.queues.passes(origin):\n            self._leave(",
        Test(f"{_MACHINE}::test_marks_and_announcements_stay_behind_the_data_of_their_topic"),
    ),
    Mutant(
        "what-waited-leaves-in-another-order",
        "transports/routing/queues",
        "        taken = list(queue.blocks)\n",
        "        taken = list(queue.blocks)[::-1]\n",
        Test(f"{_MACHINE}::test_marks_and_announcements_stay_behind_the_data_of_their_topic"),
    ),
    Mutant(
        "the-oldest-message-is-dropped",
        "transports/routing/queues",
        "        block = queue.blocks.pop()\n",
        "        block = queue.blocks.popleft()\n",
        Test(f"{_MACHINE}::test_what_a_held_exit_cannot_keep_is_dropped_there_alone"),
    ),
    Mutant(
        "a-drop-is-not-counted",
        "transports/routing/queues",
        "        self.dropped += block.count\n",
        "",
        Test(f"{_MACHINE}::test_what_a_held_exit_cannot_keep_is_dropped_there_alone"),
    ),
    Mutant(
        "a-gap-at-the-end-stays-unknown",
        "transports/routing/streams",
        "            if source.high == serial.wire(first + count - 1):\n",
        "            if False:\n",
        Test(f"{_MACHINE}::test_the_newest_number_is_repeated"),
    ),
    Mutant(
        "who-joins-later-hears-of-no-stores",
        "transports/routing/streams",
        "codec.greeting(proxy.names[0]) + self._info(self.table.sources[origin], proxy)",
        "codec.greeting(proxy.names[0])",
        Test(f"{_MACHINE}::test_announcements_go_on_and_greet_who_joins_later"),
    ),
    Mutant(
        "a-window-is-too-wide-for-what-has-left-it",
        "transports/routing/duplicates",
        "new = self.seen.add(max(start, self.base), stop)",
        "new = self.seen.add(start, stop)",
        Test("transports/routing/test_duplicates.py"),
    ),
    Mutant(
        "a-unicast-message-goes-on-twice",
        "transports/routing/forwarding",
        ".first_time(way.stream.sqn):\n            return UnicastDrop.DUPLICATE",
        ".first_time(way.stream.sqn) and not way.hops:\n            return UnicastDrop.NO_STREAM",
        Test("transports/routing/test_forwarding.py"),
    ),
    Mutant(
        "two-routers-repeat-everything",
        "transports/routing/router",
        "        portal.rival, portal.standing = whom, Standing.STANDS_ASIDE\n",
        "        portal.rival = whom\n",
        Test(f"{_MACHINE}::test_the_later_of_two_routers_stands_aside"),
    ),
    Mutant(
        "a-portal-that-begins-asks-for-nothing",
        "transports/routing/router",
        "        if settings.leased and settings.wake_ns:\n",
        "        if False:\n",
        Test(f"{_MACHINE}::test_a_portal_begins_with_requests_and_routes"),
    ),
    Mutant(
        "a-proxy-that-failed-is-left-closed",
        "transports/routing/sources",
        "        self.agenda.arm((Matter.RETRY, event.portal, source.origin), now + RETRY_NS)\n",
        "",
        Test(f"{_MACHINE}::test_a_proxy_that_cannot_open_is_tried_again"),
    ),
    Mutant(
        "what-a-dead-router-left-is-preferred-to-the-source",
        "transports/routing/sources",
        "self._far(number, record) < self._far(source.portal, source.record):",
        "self._far(number, record) > self._far(source.portal, source.record):",
        Test(f"{_MACHINE}::test_what_is_left_of_a_dead_router_gives_way_to_the_source"),
    ),
    Mutant(
        "a-source-that-another-domain-found-is-forgotten",
        "transports/routing/sources",
        "                source.elsewhere[number] = record\n                if",
        "                if False and",
        Test("transports/routing/test_router.py::test_what_is_left_of_a_dead_router_gives_way_to_the_source"),
    ),
    Mutant(
        "a-dead-router-takes-the-routes-of-the-next-one",
        "transports/resolution/srs/routers",
        "            self._take_over(instance, domain, message)\n",
        "",
        Test(f"{_WORLDS}[the_routes_of_a_router_that_was_killed]"),
    ),
    Mutant(
        "a-receiver-stays-with-a-router-that-died",
        "transports/resolution/ways",
        "not record.is_direct, -self.since[record.name]",
        "not record.is_direct, self.since[record.name]",
        Test("transports/resolution/test_ways.py::test_of_equal_places_the_one_that_was_found_last_is_taken"),
    ),
    Mutant(
        "a-reader-hears-no-router",
        "adapters/runtime/routing",
        "            self.on_far()\n",
        "            pass\n",
        Test(f"{_WORLDS}[a_reader_that_heard_no_router]"),
    ),
    Mutant(
        "a-context-without-topics-follows-no-routes",
        "transports/resolution/udp/context",
        " or self.domains.followed",
        "",
        Test(
            "transports/resolution/udp/test_context.py::"
            "test_a_context_that_sends_to_another_domain_stays_known_without_topics"
        ),
    ),
)
