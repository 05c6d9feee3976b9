"""Log lines about configurations that work."""

import logging

import pytest

from stablecast.client import Context
from stablecast.config.options import OptionError
from stablecast.core.protocol.events import RegistrationComplete
from stablecast.core.protocol.repairs import Repair
from tests.support.network import Events, Network
from tests.support.traffic import source_of


@pytest.mark.rows("P-412", "P-605", "P-680")
async def test_late_join_is_switched_on_where_there_are_stores(net: Network, caplog: pytest.LogCaptureFixture) -> None:
    """In the words of the guide; unless it is set, or there are none."""
    caplog.set_level(logging.INFO, "stablecast")
    await source_of(net, "a", topic="UME Example")
    said = 'Source "UME Example" Late Join not set, but UME store specified. Setting Late Join.'
    assert ("stablecast", logging.INFO, said) in caplog.record_tuples
    caplog.clear()
    await source_of(net, "a", topic="other", options={"late_join": 1})
    await source_of(net, topic="streaming")
    assert not [record for record in caplog.messages if "Late Join" in record]


async def test_old_names_are_taken_with_a_warning(net: Network, caplog: pytest.LogCaptureFixture) -> None:
    context = await net.context()
    receiver = context.receiver("orders", options={"ume_use_late_join": 0})
    assert caplog.record_tuples == [
        ("stablecast", logging.WARNING, "option ume_use_late_join is an old name: write use_late_join")
    ]
    assert not receiver.config.late_join


async def test_a_context_may_have_the_defaults_of_another_release(net: Network) -> None:
    """Those of the guide have none of the repairs; options change them as any."""
    context = await net.context(profile="5.3", session_id=5)
    receiver = context.receiver("orders", options={"use_otr": 2})
    assert (receiver.config.repairs, receiver.config.burst) == (Repair.NONE, 1024)
    events = Events()
    source = await context.source("orders", stores=[await net.store()], on_event=events)
    assert source.config.repairs is Repair.NONE
    assert source.config.groups.sizes == (1,)
    await events.first(RegistrationComplete)
    with pytest.raises(OptionError, match=r"there is no profile '5\.4': choose one of safe, 5\.3, 6\.17"):
        Context(profile="5.4")


async def test_topics_and_patterns_that_look_like_others_are_told(
    net: Network, caplog: pytest.LogCaptureFixture
) -> None:
    context = await net.context()
    await context.source("sensors.*")
    await context.source("sensors.oven")
    await context.receiver(pattern="sensors.>").close()
    await context.receiver(pattern="^orders[.]").close()
    told = [record.getMessage() for record in caplog.records if record.name == "stablecast"]
    assert [text.split(" looks like ")[0] for text in told] == ["the topic 'sensors.*'", "the pattern 'sensors.>'"]
    assert told[1].endswith("write '^sensors[.]'")
