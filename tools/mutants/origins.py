"""Faults in who may say what: a peer speaks for another process."""

from typing import Final

from tools.mutants.mutant import Mutant, Test

ORIGINS: Final = (
    Mutant(
        "any-host-speaks-for-a-store",
        "adapters/runtime/origins",
        "    if one == other or machine.process.environment.get(VARIABLE) == TRANSLATED:\n",
        "    if one == other or VARIABLE:\n",
        Test("adapters/client/test_origins.py::test_nothing_counts_that_another_host_says"),
    ),
    Mutant(
        "any-member-speaks-for-a-store",
        "adapters/runtime/origins",
        "(origin.names == names) if names else _same(origin.host, _host(address))",
        "_same(origin.host, _host(address))",
        Test("adapters/runtime/test_tls.py::test_a_member_speaks_for_no_other"),
    ),
    Mutant(
        "anybody-acknowledges-for-a-store",
        "adapters/client/request_inputs",
        "                messages.StableAck()\n                | messages.Keepalive()\n",
        "                messages.Keepalive()\n",
        Test("adapters/client/test_origins.py::test_nothing_counts_that_another_host_says"),
    ),
    Mutant(
        "anybody-sends-retransmissions",
        "adapters/client/request_inputs",
        "believed[key] = self._answers(sender, found, topic)",
        "believed[key] = True",
        Test("adapters/client/test_context.py::test_malformed_input_is_counted"),
    ),
    Mutant(
        "anybody-confirms-for-a-receiver",
        "adapters/client/request_inputs",
        "        if first is not None and not first.ended.is_set():\n",
        "        if first is not None and first.ended.is_set():\n",
        Test("adapters/client/test_request_inputs.py::test_one_host_confirms_for_a_receiver_while_it_is_connected"),
    ),
    Mutant(
        "a-source-is-deregistered-from-any-address",
        "adapters/store/permissions",
        "place = message.reply_to if leaver is None or proxy else leaver.reply_to",
        "place = message.reply_to",
        Test("adapters/store/test_permissions.py"),
    ),
    Mutant(
        "a-receiver-is-taken-for-the-source-whose-life-it-names",
        "adapters/store/permissions",
        "leaver = self.status().leaver(message)",
        "leaver = self.status().holder(message.reg_id, message.incarnation)",
        Test("adapters/store/test_permissions.py"),
    ),
    Mutant(
        "a-store-connects-to-any-address",
        "adapters/store/permissions",
        "                if not origins.speaks_for(peer.origin, [message.reply_to], message):\n"
        "                    return False\n",
        "",
        Test("adapters/store/test_permissions.py"),
    ),
    Mutant(
        "an-old-certificate-stays",
        "adapters/runtime/tls",
        "            self.newest = loaded\n",
        "            pass\n",
        Test("adapters/runtime/test_tls.py::test_a_renewed_certificate_is_used_without_a_restart"),
    ),
    Mutant(
        "a-role-for-one-topic-is-one-for-all",
        "adapters/runtime/policy",
        "return free or any(one.fullmatch(topic) for one in self.topics if topic is not None)",
        "return True",
        Test("adapters/runtime/test_policy.py"),
    ),
    Mutant(
        "a-topic-that-begins-like-a-permitted-one-is-permitted",
        "adapters/runtime/policy",
        "one.fullmatch(topic)",
        "one.match(topic)",
        Test("adapters/runtime/test_policy.py"),
    ),
    Mutant(
        "a-receiver-acknowledges-like-a-store",
        "adapters/runtime/policy",
        "            return (Right.STORE,)\n",
        "            return (Right.STORE, Right.RECEIVER)\n",
        Test("adapters/runtime/test_policy.py"),
    ),
)
