"""The prices of messages: each kind of form runs."""

from tools.bench.message_costs import AT_A_TIME, FORMS, measure

KINDS = ("`try_send`, `on_message`", "typed: pydantic, MessagePack", "traced, all sampled, `async with message`")


def test_each_kind_of_form_is_measured() -> None:
    found = measure(AT_A_TIME, 1, {name: FORMS[name] for name in KINDS})
    assert list(found) == list(KINDS)
    assert all(send > 0 and receive > 0 for send, receive in found.values())
