"""Faults of links between routers: in the map, in what is told, in the entry of sources, and in connections."""

from typing import Final

from tools.mutants.mutant import Mutant, Test

_MAP = "transports/routing/test_network_map.py"
_LINKS = "transports/routing/test_links.py"
_LOSSES = "transports/routing/test_losses.py"
_NETWORKS = "transports/routing/test_networks.py"
_TOLD = "transports/routing/test_link_messages.py"
_PEERS = "adapters/router/test_peer_portal.py"

LINKS: Final = (
    Mutant(
        "each-router-breaks-ties-for-itself",
        "transports/routing/network_map",
        "    paths = tree(edges, domain)\n",
        "    def turned(node: int) -> int:\n"
        "        return node ^ 0xFF * (own % 2) if node > MAX_DOMAIN else node\n\n"
        "    other = {turned(n): {turned(m): c for m, c in ends.items()} for n, ends in edges.items()}\n"
        "    paths = {turned(n): (c, tuple(map(turned, p))) for n, (c, p) in tree(other, domain).items()}\n",
        Test(f"{_MAP}::test_equal_maps_have_equal_trees_that_reach_each_domain_once"),
    ),
    Mutant(
        "a-path-costs-what-one-end-of-each-link-costs",
        "transports/routing/network_map",
        "                    edges[node][one.node] = one.cost_out + back.cost_in\n",
        "                    edges[node][one.node] = one.cost_out\n",
        Test(f"{_MAP}::test_the_cost_of_a_path_is_that_of_all_portals"),
    ),
    Mutant(
        "one-side-says-that-routers-are-joined",
        "transports/routing/network_map",
        "                elif (back := told.get(one.node, {}).get(node)) is not None:\n",
        "                elif (back := told.get(one.node, {}).get(node, one)) is not None:\n",
        Test(f"{_MAP}::test_routers_are_joined_only_if_both_say_so"),
    ),
    Mutant(
        "a-domain-is-a-way-between-routers",
        "transports/routing/network_map",
        "            if following > MAX_DOMAIN and following not in found:\n",
        "            if following not in found:\n",
        Test(f"{_MAP}::test_no_path_leads_through_a_domain"),
    ),
    Mutant(
        "an-older-record-counts",
        "transports/routing/network_map",
        "known.generation >= record.generation",
        "known.generation > record.generation + 1",
        Test(f"{_MAP}::test_an_older_record_and_one_that_cannot_be_true_are_refused"),
    ),
    Mutant(
        "what-cannot-be-reached-is-kept-for-ever",
        "transports/routing/network_map",
        "            if now >= since + LEASE_NS:\n",
        "            if now < since:\n",
        Test(f"{_MAP}::test_what_cannot_be_reached_is_forgotten_after_the_lease"),
    ),
    Mutant(
        "the-path-of-the-other-side-does-not-matter",
        "transports/routing/network",
        "        return path_name(link.paths.get(domain, 0), self.node) == self.ways[domain].name\n",
        "        return True\n",
        Test(f"{_LINKS}::test_what_comes_by_a_path_that_only_one_side_knows_is_not_taken"),
    ),
    Mutant(
        "a-link-gets-what-no-domain-behind-it-wants",
        "transports/routing/network",
        "        return any(other in self.remote and self.remote[other].matches(topic) for other in behind)\n",
        "        return any(one.matches(topic) for one in self.remote.values())\n",
        Test(f"{_LINKS}::test_only_the_cheapest_path_carries_data"),
    ),
    Mutant(
        "interest-goes-to-all-links",
        "transports/routing/network",
        "domain: None for domain in wanted if number in self.children(domain)",
        "domain: None for domain in wanted",
        Test(f"{_LINKS}::test_every_domain_gets_every_number_once"),
    ),
    Mutant(
        "interest-counts-whatever-link-it-came-by",
        "transports/routing/network",
        "        if not self.enters(told.domain, number):\n            return None\n",
        "",
        Test(f"{_LINKS}::test_interest_counts_only_from_the_way_of_its_domain"),
    ),
    Mutant(
        "interest-ends-with-its-way",
        "transports/routing/network",
        'self.agenda.arm((Matter.HELD, 0, b""), now + HOLD_NS)',
        'self.agenda.arm((Matter.HELD, 0, b""), now)',
        Test(f"{_LINKS}::test_a_link_that_breaks_keeps_the_stream_of_the_source_for_a_while"),
    ),
    Mutant(
        "interest-is-held-for-ever",
        "transports/routing/network",
        "if query not in heard and interest.ends(query)]",
        "if query not in heard and not interest.wanted]",
        Test(f"{_LINKS}::test_a_link_that_breaks_keeps_the_stream_of_the_source_for_a_while"),
    ),
    Mutant(
        "a-digest-is-not-compared",
        "transports/routing/network",
        "!= (link.heard_interest, link.heard_sources):",
        "== (None, None):",
        Test(f"{_LINKS}::test_a_link_on_which_something_was_missed_begins_anew"),
    ),
    Mutant(
        "maps-that-differ-stay-so",
        "transports/routing/network",
        "            link.differs_since = now\n            self._send_records(number)\n",
        "            link.differs_since = now\n",
        Test(f"{_LINKS}::test_routers_that_know_too_little_of_each_other_tell_everything_again"),
    ),
    Mutant(
        "a-link-that-flaps-counts-at-once",
        "transports/routing/network",
        "min(MOST_BACKOFF_NS, max(BACKOFF_NS, 2 * portal.backoff_ns))",
        "min(BACKOFF_NS, portal.backoff_ns)",
        Test(f"{_LINKS}::test_a_link_that_breaks_again_and_again_is_left_out_for_longer"),
    ),
    Mutant(
        "a-source-that-was-told-early-is-forgotten",
        "transports/routing/router",
        "if found.record.origin not in self.table.sources:",
        "if found.record.origin in self.table.sources:",
        Test(f"{_LINKS}::test_a_source_that_was_told_before_it_is_wanted_is_taken_up_when_it_is"),
    ),
    Mutant(
        "what-a-source-announced-early-is-forgotten",
        "transports/routing/sources",
        "            self.streams.remember(source, link.info[source.origin])\n",
        "            pass\n",
        Test(f"{_LINKS}::test_a_source_that_was_told_before_it_is_wanted_is_taken_up_when_it_is"),
    ),
    Mutant(
        "a-second-link-to-a-router-is-taken",
        "transports/routing/network",
        "        elif other is not None:\n",
        "        elif other is not None and not name:\n",
        Test(f"{_LINKS}::test_a_second_link_to_the_same_router_is_refused"),
    ),
    Mutant(
        "a-new-entry-begins-new-proxies",
        "transports/routing/sources",
        "        self.outbox += source.leave()\n        source.portal",
        "        self._close_all(source)\n        self.outbox += source.leave()\n        source.portal",
        Test(f"{_LINKS}::test_proxies_stay_when_their_source_comes_by_another_link"),
    ),
    Mutant(
        "the-end-of-what-waited-stays-unknown",
        "transports/routing/queues",
        "        queue.cut = True\n",
        "",
        Test(f"{_LINKS}::test_data_waits_behind_what_a_link_takes_and_the_newest_is_dropped"),
    ),
    Mutant(
        "the-end-of-a-source-on-a-link-is-not-told",
        "transports/routing/link_messages",
        "        flags=0 if told.on else r.GatewayAdvertisement.EOS,\n",
        "        flags=0,\n",
        Test(f"{_TOLD}::test_a_source_is_told_with_all_that_its_advertisement_says"),
    ),
    Mutant(
        "the-old-connection-is-kept-beside-the-new",
        "adapters/router/peer_portal",
        "            if old.hello.name != made.hello.name:\n",
        "            if old.hello != made.hello:\n",
        Test(f"{_PEERS}::test_a_new_connection_of_a_router_replaces_the_old_one"),
    ),
    Mutant(
        "anybody-may-link",
        "adapters/router/peer_portal",
        'if not self._origins.has_right(origin, (Right.ROUTER,), None, "a link"):',
        "if origin is None:",
        Test(f"{_PEERS}::test_a_link_uses_tls_like_all_other_connections"),
    ),
    Mutant(
        "a-silent-link-is-kept",
        "transports/routing/network",
        "        if now - link.heard_at >= settings.silence_ns:\n",
        "        if now < link.heard_at:\n",
        Test(f"{_PEERS}::test_a_silent_link_ends"),
    ),
    Mutant(
        "a-router-that-is-not-reached-is-not-called-again",
        "adapters/router/peer_portal",
        "            except (OSError, TimeoutError, StablecastError) as error:\n",
        "            except (OSError, TimeoutError, StablecastError) as error:\n"
        "                if self._failed > 1:\n                    return\n",
        Test(f"{_PEERS}::test_a_router_calls_until_it_is_answered"),
    ),
    Mutant(
        "a-link-that-is-back-at-once-lost-nothing",
        "transports/routing/losses",
        " or not broken.isdisjoint(_edges(before))",
        "",
        Test(f"{_LOSSES}::test_a_link_that_is_back_before_anybody_looked_was_broken"),
    ),
    Mutant(
        "a-loss-is-told-in-no-other-router",
        "transports/routing/losses",
        "self.network.children(domain)",
        "()",
        Test(f"{_LOSSES}::test_a_broken_destination_is_told_to_the_whole_network_once"),
    ),
    Mutant(
        "a-late-proxy-has-nothing-to-say",
        "transports/routing/sources",
        "if link is not None and source.origin in link.info:",
        "if source.origin in (link.info if link else ()) and source.info is None and source.joined:",
        Test(f"{_LINKS}::test_a_source_that_fell_silent_is_announced_by_a_proxy_that_opens_late"),
    ),
    Mutant(
        "a-full-link-is-a-secret",
        "transports/routing/losses",
        "[domain] if domain else [one for one in self.network.ways if self.network.enters(one, number)]",
        "[domain] if domain else []",
        Test(f"{_LOSSES}::test_a_full_link_is_told_to_those_behind_whom_it_lies"),
    ),
    Mutant(
        "the-end-of-a-process-disturbs-all-who-sent-to-it",
        "transports/routing/router",
        "if reason is UnicastDrop.REFUSED:",
        "if not reason:",
        Test(f"{_LOSSES}::test_of_a_process_that_has_ended_nobody_hears"),
    ),
    Mutant(
        "one-host-disturbs-others-all-the-time",
        "transports/routing/losses",
        "min(MOST_PAUSE_NS, 2 * pause)",
        "pause",
        Test(f"{_LOSSES}::test_a_host_that_breaks_its_connections_disturbs_others_less_and_less"),
    ),
    Mutant(
        "a-loss-is-believed-from-any-side",
        "transports/routing/router",
        "                if self.network.enters(domain, number):\n                    self.losses.tell",
        "                if domain:\n                    self.losses.tell",
        Test(f"{_LOSSES}::test_what_comes_by_another_way_is_not_believed"),
    ),
    Mutant(
        "whoever-sent-to-a-domain-hears-of-each-loss-there",
        "adapters/router/unicast_port",
        'address in ("", f"{one.ip}:{one.port}")',
        "bool(one.ip)",
        Test("adapters/router/test_portal.py::test_a_connection_knows_where_its_messages_went"),
    ),
    Mutant(
        "nobody-is-told-what-a-link-lost",
        "adapters/router/portal",
        "peer.carried(effect.domain, effect.address)",
        "not peer.messages_rcved",
        Test("adapters/lab/whole/test_found.py::test_a_schedule_that_found_a_defect_is_clean"),
    ),
)
