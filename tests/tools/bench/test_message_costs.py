"""The prices of messages: each kind of form runs, and the table has its rows."""

import pytest

from tests.support.tree import ROOT
from tools.bench import message_costs
from tools.bench.message_costs import AT_A_TIME, FORMS, measure

KINDS = ("`try_send`, `on_message`", "typed: pydantic, MessagePack", "traced, all sampled, `async with message`")


def test_each_kind_of_form_is_measured() -> None:
    found = measure(AT_A_TIME, 1, {name: FORMS[name] for name in KINDS})
    assert list(found) == list(KINDS)
    assert all(send > 0 and receive > 0 for send, receive in found.values())


def test_the_table_is_that_of_the_page(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_costs, "measure", lambda *_: dict.fromkeys(FORMS, (1.0, 2.0)))
    monkeypatch.setattr("sys.argv", ["message_costs"])
    message_costs.main()
    page = (ROOT / "spec" / "performance.md").read_text(encoding="utf-8")
    for line in capsys.readouterr().out.splitlines():
        assert f"{line.split('|')[1]}|" in page
