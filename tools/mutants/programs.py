"""Faults in the shipped programs around the core: client, connections, store, journal, resolvers and services.

Whole worlds find those that break what an application observes. Tests find the others.
"""

from typing import Final

from tools.mutants.mutant import Mutant, Test, WholeWorlds

PROGRAMS: Final = (
    Mutant(
        "a-replaced-session-delivers-on",
        "adapters/client/session",
        "        self._stopped, self._plain = True, False\n",
        "        self._plain = False\n",
        Test(
            "adapters/client/test_precedence.py::test_a_later_life_is_followed_again_after_an_earlier_one_without_a_common_past"
        ),
    ),
    Mutant(
        "a-session-starts-with-messages-of-an-earlier-run",
        "adapters/client/session",
        "inputs.LowChosen(self.succession.low(question, low))",
        "inputs.LowChosen(low)",
        Test("adapters/client/test_going_on.py::test_a_session_starts_no_lower_than_this_run_did"),
    ),
    Mutant(
        "consumed-messages-wait-for-the-next-input",
        "adapters/client/session",
        "    def _before_timer(self) -> None:\n        self.report_consumed()\n",
        "    def _before_timer(self) -> None:\n",
        Test("adapters/client/test_going_on.py::test_consumed_messages_are_reported_when_the_driver_settles"),
    ),
    Mutant(
        "the-message-in-hand-is-confirmed",
        "adapters/client/iteration",
        "        self._in_hand = 1\n        assert inbox.current is not None\n",
        "        self._in_hand = 1\n        assert inbox.current is not None\n"
        "        inbox.current.settle(inbox.handed + 1)\n",
        WholeWorlds("confirmed", first=0, count=1),
    ),
    Mutant(
        "consumption-is-acknowledged-a-second-later",
        "receiver/consumption_acks",
        "self.timers.set(AckTimer.ACK, now + self.config.ack_interval_ns)",
        "self.timers.set(AckTimer.ACK, now + 10 * self.config.ack_interval_ns)",
        WholeWorlds("repeated", first=133, count=10),
    ),
    Mutant(
        "early-messages-are-dropped",
        "adapters/client/subscriber",
        "            self._early.keep(hop, run)\n",
        "            pass\n",
        Test("adapters/client/test_early_runs.py::test_a_receiver_delivers_what_overtook_the_announcement"),
    ),
    Mutant(
        "a-lost-source-is-not-looked-for",
        "adapters/client/receiver",
        "                self._context.lost_source(self.topic, effect.transport, others=effect.others)\n",
        "                pass\n",
        WholeWorlds("hang", first=4, count=15),
    ),
    Mutant(
        "sessions-learn-of-no-broken-connection",
        "adapters/client/subscriber",
        "        for session in self.every_session:\n            session.receive(event)\n",
        "        pass\n",
        Test("adapters/client/test_receiver.py::test_each_session_learns_of_a_broken_connection"),
    ),
    Mutant(
        "a-divided-batch-loses-its-rest",
        "adapters/client/inbox",
        "            self.put_back(batch.part(most, batch.count))\n",
        "",
        WholeWorlds("hang", first=2, count=15),
    ),
    Mutant(
        "the-message-in-hand-counts-as-consumed-with-its-run",
        "adapters/client/iteration",
        "            current.settle(self.inbox.handed - (0 if done else self._in_hand))\n",
        "            current.settle(current.count)\n",
        Test("adapters/client/test_iteration.py::test_batches_go_on_where_messages_ended"),
    ),
    Mutant(
        "a-context-ignores-broken-connections",
        "adapters/client/context",
        "lambda peer: self._on_broken(Reset(peer)), ",
        "lambda peer: None, ",
        Test("adapters/client/test_context.py::test_broken_connections_reach_everybody"),
    ),
    Mutant(
        "a-finished-session-forgets-what-was-consumed",
        "adapters/client/subscriber",
        "repeats them.\n                self._feed_machine(ev.Remember(_report(session)))\n",
        "repeats them.\n",
        Test("adapters/client/test_two_sources.py::test_a_life_with_another_store_does_not_bring_messages_twice"),
    ),
    Mutant(
        "a-batch-of-the-live-stream-has-the-wrong-first-number",
        "adapters/client/session",
        "Batch(run, 0, count, at, life, self)",
        "Batch(run, 0, count, at + 1, life, self)",
        WholeWorlds("changed", first=0, count=15),
    ),
    Mutant(
        "recovered-messages-are-dropped",
        "adapters/client/session",
        "        self._driver.feed_all(self._tokens.keep_recovered(messages))\n",
        "        pass\n",
        WholeWorlds("hang", first=0, count=15),
    ),
    Mutant(
        "a-broken-link-is-not-reported",
        "adapters/runtime/connection_pool",
        "PAUSE_SECONDS)\n        self._broken(link.address)\n",
        "PAUSE_SECONDS)\n",
        Test("adapters/runtime/test_connection_pool.py::test_a_broken_connection_is_made_again_by_itself"),
    ),
    Mutant(
        "a-link-sends-its-queue-twice",
        "adapters/runtime/connection_pool",
        '            transport.write(b"".join(self._queue))\n            self._empty()\n',
        '            transport.write(b"".join(self._queue))\n',
        Test("adapters/runtime/test_connection_pool.py::test_one_connection_for_all_messages"),
    ),
    Mutant(
        "the-messages-of-a-turn-are-lost",
        "adapters/runtime/connection_pool",
        "            transport.writelines(self._queue)\n            self._empty()\n",
        "            self._empty()\n",
        Test("adapters/runtime/test_connection_pool.py::test_later_messages_of_a_turn_leave_together_and_in_order"),
    ),
    Mutant(
        "a-link-stays-after-its-end",
        "adapters/runtime/connection_pool",
        "            self._on_lost(self)\n",
        "            pass\n",
        WholeWorlds("hang", first=0, count=15),
    ),
    Mutant(
        "a-refused-connection-is-tried-for-ever",
        "adapters/runtime/connection_pool",
        (
            "        if self._links.get(link.address) is link:  # `_evict` may have replaced it during an attempt.\n"
            "            del self._links[link.address]\n"
        ),
        "        if self._links.get(link.address) is link:\n            pass\n",
        WholeWorlds("hang", first=0, count=15),
    ),
    Mutant(
        "only-the-first-joiner-gets-the-stream",
        "adapters/runtime/stream",
        "            self._turn.append(block)\n",
        "            pass\n",
        WholeWorlds("hang", first=0, count=15),
    ),
    Mutant(
        "a-joiner-is-added-before-its-greeting",
        "adapters/runtime/stream",
        (
            "        transport.write(self._server.greet())  # Before `add`: no block may come before the greeting.\n"
            "        self._server.add(self)\n"
        ),
        (
            "        self._server.add(self)\n"
            "        asyncio.get_running_loop().call_soon(lambda: transport.write(self._server.greet()))\n"
        ),
        Test("adapters/runtime/test_stream.py::test_a_block_of_the_turn_in_which_a_joiner_comes_follows_its_greeting"),
    ),
    Mutant(
        "an-unreachable-source-is-given-up",
        "adapters/runtime/stream",
        "            return  # Unreachable: the life may go on, so the joiner tries again.\n",
        "            self._finish()\n",
        Test("adapters/runtime/test_stream_joiner.py::test_a_peer_out_of_reach_is_tried_again"),
    ),
    Mutant(
        "a-source-that-refuses-is-joined-for-ever",
        "adapters/runtime/stream",
        "        except ConnectionRefusedError:\n            self._finish()\n",
        "        except ConnectionRefusedError:\n            return\n",
        Test("adapters/runtime/test_stream_joiner.py::test_a_refusal_means_gone"),
    ),
    Mutant(
        "another-life-at-the-place-is-accepted",
        "adapters/runtime/stream",
        "self._expected in (None, session_id)",
        "True",
        WholeWorlds("hang", first=7, count=15),
    ),
    Mutant(
        "a-peer-that-leaves-is-not-noted",
        "adapters/runtime/request_port",
        "        timer = self._peers.pop(peer, None)\n",
        "        timer = None\n",
        Test("adapters/runtime/test_request_port.py::test_a_peer_accepted_just_before_the_end_is_disconnected"),
    ),
    Mutant(
        "scarce-descriptors-fill-the-log",
        "adapters/text/scarcity",
        "SCARCE = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EAGAIN})",
        "SCARCE = frozenset({errno.ENOBUFS})",
        Test(
            "adapters/lab/whole/test_found.py::test_a_schedule_that_found_a_defect_is_clean[a_hundred_tracebacks_for_one_connection]"
        ),
    ),
    Mutant(
        "a-deregistered-client-stays-on-disk",
        "adapters/store/store",
        "        self._journal.append_state(forget_record(effect.reg_id), effect.ticket)\n",
        "        self._journal.append_state(forget_record(0), effect.ticket)\n",
        Test("adapters/store/test_store.py::test_a_client_that_stays_away_too_long_is_forgotten"),
    ),
    Mutant(
        "a-store-always-remembers",
        "adapters/store/store",
        "            memory=memory,\n",
        "            memory=True,\n",
        Test("adapters/store/test_store.py::test_only_a_new_store_remembers_without_a_journal"),
    ),
    Mutant(
        "a-cut-stays-in-memory",
        "adapters/store/message_storage",
        "                self._log.cut(source, effect.number, effect.ticket)\n",
        "                pass\n",
        Test("adapters/store/test_message_storage.py::test_forgotten_messages_go_everywhere_and_stay_gone"),
    ),
    Mutant(
        "a-cut-misses-the-cache",
        "adapters/store/message_storage",
        "                self._cache.cut(source, effect.number)\n",
        "",
        Test("adapters/store/test_message_storage.py::test_forgotten_messages_go_everywhere_and_stay_gone"),
    ),
    Mutant(
        "the-first-run-is-not-recovered",
        "adapters/store/recovered_state",
        "list(_joined(journal.sizes(reg_id)))",
        "list(_joined(journal.sizes(reg_id)))[1:]",
        WholeWorlds("reused", first=3, count=15),
    ),
    Mutant(
        "holes-are-recovered-as-messages",
        "adapters/store/recovered_state",
        "known[0] + known[1] == first and known[2] < RUN_BYTES",
        "known[2] < RUN_BYTES",
        Test("adapters/store/test_recovered_state.py::test_small_neighbours_are_one_extent"),
    ),
    Mutant(
        "damage-is-not-reported",
        "adapters/store/retransmission",
        "                self._damaged(source_reg_id, piece, block)\n",
        "                pass\n",
        Test("adapters/store/test_retransmission.py::test_damage_is_reported_and_the_rest_is_sent"),
    ),
    Mutant(
        "a-lane-stops-after-one-read",
        "adapters/store/retransmission",
        "        self._pump(source_reg_id)\n        if not lane.reading:",
        "        if not lane.reading:",
        Test("adapters/store/test_retransmission.py::test_the_records_read_at_one_time_are_limited"),
    ),
    Mutant(
        "a-store-ignores-lost-messages",
        "adapters/store/arrivals",
        "                if lost is not None:\n                    self._on_lost(lost)\n",
        "",
        Test("adapters/store/test_arrivals.py::test_items_of_a_stream_are_fed_and_counted"),
    ),
    Mutant(
        "a-store-drops-what-is-sent-again",
        "adapters/store/arrivals",
        "                recovered.append(found)\n",
        "                pass\n",
        Test("adapters/store/test_arrivals.py::test_messages_on_the_port_are_told_and_retransmissions_fed"),
    ),
    Mutant(
        "a-stream-that-ended-stays-joined",
        "adapters/store/arrivals",
        "                self.joiners.pop(life, None)\n            self._feed",
        "                pass\n            self._feed",
        Test("adapters/store/test_arrivals.py::test_a_stream_that_ends_is_told"),
    ),
    Mutant(
        "a-store-joins-no-second-time",
        "adapters/store/arrivals",
        "            self._feed(Gone(place) if gone else Ended(life))\n",
        "            pass\n",
        Test("adapters/store/test_arrivals.py::test_a_stream_that_ends_is_told"),
    ),
    Mutant(
        "a-store-ignores-broken-connections",
        "adapters/store/store",
        "lambda peer: self._on_broken(Reset(peer)), lambda peer: self._on_broken(Gone(peer)), host",
        "lambda peer: None, lambda peer: None, host",
        Test("adapters/store/test_store.py::test_a_store_learns_of_broken_connections"),
    ),
    Mutant(
        "a-store-forgets-its-clients-in-a-checkpoint",
        "adapters/store/store",
        "*map(client_record, endpoint.checkpoint())]",
        "*map(client_record, endpoint.checkpoint()[1:])]",
        Test("adapters/store/test_crash_matrix.py::test_nothing_that_was_reported_is_lost[disk-restart-scanned]"),
    ),
    Mutant(
        "a-commit-is-not-synced",
        "adapters/store/journal/writer",
        "            began = machine.clock.monotonic_ns()\n            self._disk.sync(self._fd)\n",
        "            began = machine.clock.monotonic_ns()\n",
        WholeWorlds("reused", first=37, count=10),
    ),
    Mutant(
        "a-commit-on-the-loop-is-reported-before-the-sync",
        "adapters/store/journal/writer",
        "        try:\n            self._commit(held[0].segment, held)\n        except",
        (
            "        self._committed(len(held))\n"
            "        try:\n"
            "            self._commit(held[0].segment, held)\n"
            "            return\n"
            "        except"
        ),
        Test("adapters/store/journal/test_turns.py::test_an_error_on_the_loop_ends_the_thread_as_its_own_does"),
    ),
    Mutant(
        "a-batch-is-reported-before-the-sync",
        "adapters/store/journal/writer",
        "        for at, (segment, records) in enumerate(parts, start=1):\n",
        (
            "        if batch:\n"
            "            self._tell(self._committed, len(batch))\n"
            "        for at, (segment, records) in enumerate(parts, start=1):\n"
        ),
        WholeWorlds("traceback", first=0, count=15),
    ),
    Mutant(
        "the-loop-overtakes-the-writer",
        "adapters/store/journal/writer",
        "self._short >= STEADY and self._given == self._done and segment",
        "self._short >= STEADY and segment",
        Test("adapters/store/journal/test_turns.py::test_the_loop_flushes_nothing_while_the_thread_has_older_records"),
    ),
    Mutant(
        "states-after-the-checkpoint-are-lost",
        "adapters/store/journal/recovery",
        "            found.states.append(data[entry.body])\n",
        "            pass\n",
        WholeWorlds("reused", first=3, count=15),
    ),
    Mutant(
        "erasures-are-not-recovered",
        "adapters/store/journal/recovery",
        "            found.index.erase(Erase(stream, start, stop, (number, offset)))\n",
        "            pass\n",
        Test("adapters/store/journal/test_recovery.py::test_erasures_are_bound_to_their_place"),
    ),
    Mutant(
        "a-cut-leaves-one-message",
        "adapters/store/journal/journal",
        "Erase(stream, at, HIGHEST, self._position())",
        "Erase(stream, at + 1, HIGHEST, self._position())",
        Test("adapters/store/journal/test_journal.py::test_newest_wins_and_read_stays_within_what_is_live"),
    ),
    Mutant(
        "a-journal-closes-before-its-writer",
        "adapters/store/journal/journal",
        "            self._writer.close()\n            await self._stopped.wait()\n",
        "            self._writer.close()\n",
        Test("adapters/store/journal/test_journal.py::test_append_close_reopen"),
    ),
    Mutant(
        "a-failed-sync-is-ignored",
        "adapters/store/journal/journal",
        "        self.on_failed(self._failure)\n",
        "        pass\n",
        WholeWorlds("traceback", first=8, count=15),
    ),
    Mutant(
        "a-source-is-reported-once-only",
        "adapters/resolver/combined_resolver",
        "            self._ways.pop(event.topic, None)  # The receiver",
        "            pass  # The receiver",
        Test("adapters/resolver/test_combined_resolver.py::test_a_source_that_both_find_is_reported_once"),
    ),
    Mutant(
        "a-withdrawn-source-stays-reported",
        "transports/resolution/ways",
        "        return True, self._replace(record.life)",
        "        return True, None",
        Test("adapters/resolver/test_combined_resolver.py::test_repeats_mean_nothing_until_the_source_was_gone"),
    ),
    Mutant(
        "the-end-of-a-source-is-not-reported",
        "adapters/resolver/combined_resolver",
        "        self._on_gone(topic, record)\n",
        "",
        Test("adapters/resolver/test_combined_resolver.py::test_the_end_of_a_source_is_reported"),
    ),
    Mutant(
        "a-lost-source-stays-reported",
        "transports/resolution/ways",
        "        others = [self._replace(life) for life in lives if life in self.taken]",
        "        others: list[SourceRecord | None] = []",
        Test("adapters/resolver/test_combined_resolver.py::test_a_source_that_was_lost_is_reported_again"),
    ),
    Mutant(
        "only-the-first-relay-or-service-is-asked",
        "adapters/resolver/combined_resolver",
        (
            "        for kind in self._kinds:\n"
            "            kind.feed(event)\n"
            "        if isinstance(event, inputs.AddReceiver):"
        ),
        (
            "        for kind in self._kinds[:1]:\n"
            "            kind.feed(event)\n"
            "        if isinstance(event, inputs.AddReceiver):"
        ),
        Test("adapters/resolver/test_combined_resolver.py::test_every_kind_gets_every_input"),
    ),
    Mutant(
        "a-service-connection-breaks-unnoticed",
        "adapters/resolver/channels",
        "        self.report(ConnectionClosed(number, reason))\n        self._cut",
        "        self._cut",
        Test("adapters/resolver/test_channels.py::test_a_connection_from_its_beginning_to_its_end"),
    ),
    Mutant(
        "a-service-does-not-disconnect-at-its-end",
        "adapters/resolver/srs/daemon",
        "        for transport in self._peers.values():\n            transport.abort()\n",
        "",
        WholeWorlds("hang", first=10, count=15),
    ),
    Mutant(
        "a-service-drops-what-it-sends-first",
        "adapters/resolver/srs/daemon",
        "        transport.write(data)\n        waiting",
        ("        if self._machine.counters().get('never'):\n            transport.write(data)\n        waiting"),
        WholeWorlds("hang", first=10, count=15),
    ),
    Mutant(
        "a-service-ignores-new-connections",
        "adapters/resolver/srs/daemon",
        "        self.feed(events.ConnectionAccepted(number, address))\n",
        "        pass\n",
        WholeWorlds("hang", first=10, count=15),
    ),
    Mutant(
        "a-service-keeps-clients-that-left",
        "adapters/resolver/srs/daemon",
        "        self.feed(events.ConnectionClosed(number))\n",
        "",
        Test("adapters/resolver/srs/test_daemon.py::test_a_client_that_left_is_counted_no_more"),
    ),
    Mutant(
        "a-service-does-not-disconnect",
        "adapters/resolver/srs/daemon",
        "            case events.Disconnect(connection):\n                self._abort(connection)\n",
        "            case events.Disconnect():\n                pass\n",
        Test("adapters/resolver/srs/test_daemon.py::test_a_malformed_client_is_cut_off_alone"),
    ),
    Mutant(
        "a-service-that-closes-waits-for-ever",
        "adapters/resolver/srs/daemon",
        "        if not self._peers:\n            self._empty.set()\n",
        "",
        Test("adapters/resolver/srs/test_daemon.py::test_a_client_that_left_is_counted_no_more"),
    ),
    Mutant(
        "a-context-ignores-what-a-service-found",
        "adapters/resolver/srs_resolver",
        "                self._listeners.tell(effect)\n",
        "                pass\n",
        WholeWorlds("hang", first=10, count=15),
    ),
    Mutant(
        "a-relay-sends-to-the-first-context-only",
        "adapters/resolver/endpoint",
        "                for to in clients:\n",
        "                for to in clients[:1]:\n",
        WholeWorlds("hang", first=0, count=15),
    ),
    Mutant(
        "a-reader-of-datagrams-takes-one-of-each-sender",
        "adapters/resolver/endpoint",
        "for sender, those in found for one in those)",
        "for sender, those in found for one in those[:1])",
        Test("adapters/resolver/test_endpoint.py::test_every_datagram_of_a_sender_is_fed"),
    ),
    Mutant(
        "a-pattern-deregisters-its-first-topic-only",
        "adapters/client/wildcard",
        "for receiver in self._topics.values()))",
        "for receiver in [*self._topics.values()][:1]))",
        Test("adapters/client/test_wildcard.py::test_all_topics_deregister"),
    ),
    Mutant(
        "a-pattern-makes-no-receiver-of-a-new-topic",
        "adapters/client/wildcard",
        "receiver = self._topics.get(topic) or self._create(topic)",
        "receiver = self._topics.get(topic)",
        Test("adapters/client/test_wildcard_worlds.py::test_each_message_of_each_topic_is_booked_once_and_in_order"),
    ),
    Mutant(
        "an-abandoned-topic-is-kept",
        "adapters/client/wildcard",
        "            receiver.retire(partial(self._delete, topic))\n",
        "            pass\n",
        Test("adapters/client/test_wildcard.py::test_a_run_of_unanswered_queries_is_an_event_of_the_topic"),
    ),
    Mutant(
        "a-group-is-left-for-good",
        "adapters/resolver/resolver",
        "        self._member = self._endpoint.read(joined)\n",
        "        self._endpoint.read(joined)\n",
        Test("adapters/resolver/test_resolver.py::test_contexts_meet_in_a_group"),
    ),
    Mutant(
        "later-copies-of-a-hot-number-are-delivered",
        "adapters/client/hot_inbox",
        "            if fresh:\n                return batch\n",
        "            return batch\n",
        Test("adapters/client/test_hot_failover.py::test_each_number_comes_once"),
    ),
    Mutant(
        "a-service-may-not-listen-everywhere",
        "adapters/runtime/interfaces",
        "if not is_ip6(host) and host != ANY and not",
        "if not is_ip6(host) and not",
        Test("adapters/runtime/test_interfaces.py::test_a_place_to_listen_is_of_this_host"),
    ),
    Mutant(
        "a-pool-closes-before-what-it-evicted",
        "adapters/runtime/connection_pool",
        "links = [*self._links.values(), *self._ending]",
        "links = [*self._links.values()]",
        Test("adapters/runtime/test_connection_pool.py::test_closing_waits_for_a_connection_that_made_room"),
    ),
    Mutant(
        "a-callback-that-fails-gives-back-what-it-consumed",
        "adapters/client/callbacks",
        "            batch.settle(index)\n            self._inbox.clear()\n",
        "            self._inbox.clear()\n            batch.settle(index)\n",
        Test(
            "adapters/client/test_hot_failover.py::test_what_a_callback_consumed_before_it_failed_does_not_come_again"
        ),
    ),
    Mutant(
        "the-object-of-the-message-before-comes-back",
        "adapters/client/event_details",
        "        begin = bisect_left(self._lasts, first)\n        end",
        "        begin = max(0, bisect_left(self._lasts, first) - 1)\n        end",
        Test("adapters/client/test_event_details.py::test_objects_are_found_by_any_number_of_their_message"),
    ),
    Mutant(
        "the-memory-of-one-source-is-planned-for-all",
        "adapters/config/capacity",
        "        return self.memory_each * self.load.sources\n",
        "        return self.memory_each\n",
        Test("adapters/config/test_capacity.py::test_sizes_apply_to_each_source"),
    ),
)
