"""Faults of routers: in the machine, in the layer of unicast, in the files, checks and pages."""

from typing import Final

from tools.mutants.mutant import Mutant, Test

_FILES = "adapters/router/test_router_files.py"
_CHECKS = "adapters/router/test_router_checks.py"
_MACHINE = "transports/routing/test_router.py"

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
        "        layers.append(ConfigLayer(str(self.path), tuple(settings)))\n",
        "        layers.insert(0, ConfigLayer(str(self.path), tuple(settings)))\n",
        Test(f"{_FILES}::test_the_order_of_options"),
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
)
