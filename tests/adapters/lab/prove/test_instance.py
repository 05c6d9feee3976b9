"""An operator's configuration, read."""

from pathlib import Path

import pytest

from stablecast.config.findings import ConfigFileError
from stablecast.config.options import OptionError
from stablecast.core.protocol.quorum import Consensus, Intergroup
from stablecast.core.protocol.repairs import Repair
from stablecast.core.protocol.settings import StoreBehavior
from stablecast.lab.prove.instance import MAX_STORES, Instance, ProofBounds, ProveError, instance


def read(tmp_path: Path, text: str, *options: str, profile: str = "safe") -> Instance:
    path = tmp_path / "um.cfg"
    path.write_text(text)
    return instance([path], options, profile, ProofBounds())


def test_scopes_names_and_comments(tmp_path: Path) -> None:
    """Any case, comments anywhere, blanks as one likes; lists append, later lines override."""
    found = read(
        tmp_path,
        "# stores\n\nSource UME_Store 10.0.0.1:14567:1:0\nsource\tume_store 10.0.0.2:14567:2:1   # the second\n"
        "source ume_store_group 0:1\nsource ume_store_group 1:1\n"
        "source ume_retention_intergroup_stability_behavior any\n"
        "source ume_retention_intergroup_stability_behavior All-Active\n",
    )
    assert [store.address for store in found.source.stores] == ["10.0.0.1:14567", "10.0.0.2:14567"]
    assert found.source.groups.sizes == (1, 1)
    assert found.source.groups.intergroup is Intergroup.ALL_ACTIVE
    assert found.notes == ()


def test_several_files_then_options(tmp_path: Path) -> None:
    paths = [tmp_path / "a.cfg", tmp_path / "b.cfg"]
    paths[0].write_text("source ume_store 10.0.0.1:14567:1\nsource ume_flight_size 5\n")
    paths[1].write_text("source ume_store 10.0.0.2:14567:2\nsource ume_flight_size 6\n")
    found = instance(paths, ["ume_store=10.0.0.3:14567:3", "ume_flight_size=7"], "safe", ProofBounds())
    assert len(found.source.stores) == 3
    assert found.source.flight_messages == 7


def test_profiles_give_defaults_and_repairs(tmp_path: Path) -> None:
    text = "source ume_store 10.0.0.1:14567:1\n"
    safe, old = read(tmp_path, text), read(tmp_path, text, profile="5.3")
    assert (safe.source.consensus, safe.source.behavior) == (Consensus.HIGHEST, StoreBehavior.QC)
    assert (old.source.consensus, old.source.behavior) == (Consensus.MAJORITY, StoreBehavior.RR)
    assert (safe.store_repairs, safe.receiver_repairs) == (Repair.ALL, Repair.ALL)
    assert (old.store_repairs, old.receiver_repairs) == (Repair.NONE, Repair.NONE)
    with pytest.raises(OptionError):
        read(tmp_path, text, profile="none")


@pytest.mark.rows("P-501")
def test_groups_mean_quorums(tmp_path: Path) -> None:
    """Under profile 5.3 round robin is the default, which knows no groups."""
    text = "source ume_store 10.0.0.1:14567:1\nsource ume_store_group 0:1\n"
    found = read(tmp_path, text, profile="5.3")
    assert found.source.behavior is StoreBehavior.QC
    assert "round robin has no groups" in found.notes[0]
    kept = read(tmp_path, f"{text}source ume_store_behavior rr\n", profile="5.3")
    assert kept.source.behavior is StoreBehavior.RR


@pytest.mark.rows("P-526")
def test_a_size_before_the_stores_stays(tmp_path: Path) -> None:
    """Five stores in a group of three are two spare ones, wherever the size stands."""
    stores = "".join(f"source ume_store 10.0.0.{n}:14567:{n}\n" for n in range(1, 6))
    for text in (f"source ume_store_group 0:3\n{stores}", f"{stores}source ume_store_group 0:3\n"):
        found = read(tmp_path, text)
        assert found.source.groups.sizes == (3,)
        assert [finding.code for finding in found.findings if finding.fatal] == ["backup-stores"]


def test_options_that_do_not_concern_stores_are_skipped(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        "source ume_store 10.0.0.1:14567:1\nreceiver use_otr 0\nsource transport tcp\nsource late_join 1\n",
    )
    assert [note.split(": ", 1)[1] for note in found.notes] == [
        "receiver use_otr does not concern stores: skipped",
        "source transport does not concern stores: skipped",
    ]
    assert found.source.late_join


def test_who_the_source_is(tmp_path: Path) -> None:
    assert read(tmp_path, "source ume_store 10.0.0.1:14567\nsource ume_session_id 7\n").notes == ()
    found = read(tmp_path, "source ume_store 10.0.0.1:14567\n")
    assert "neither a session id nor registration IDs" in found.notes[0]


def test_two_messages_with_few_stores() -> None:
    def messages(count: int, asked: int = 0) -> int:
        options = [f"ume_store=10.0.0.{n}:14567:{n}" for n in range(1, count + 1)]
        return instance([], options, "safe", ProofBounds(asked)).bounds.messages

    assert (messages(3), messages(4), messages(4, 2)) == (2, 1, 2)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("source\n", "um.cfg:1: <source>: 'source' is not a setting: write scope option value"),
        ("source ume_store\n", "no stores are configured"),
        ("sauce ume_store x\n", "there is no scope 'sauce': write one of context, source"),
        ("source ume_stor 10.0.0.1:1\n", "there is no source option 'ume_stor': did you mean 'ume_store'?"),
        ("source ume_store nowhere\n", "um.cfg:1: "),
        ("source late_join 1\n", "no stores are configured"),
        (
            "".join(f"source ume_store 10.0.0.{n}:1:{n}\n" for n in range(1, MAX_STORES + 2)),
            "33 stores are configured: a search covers at most 32",
        ),
    ],
)
def test_unreadable_configurations_are_named(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises((ProveError, ConfigFileError)) as refused:
        read(tmp_path, text)
    assert why in str(refused.value)


def test_what_is_no_text_or_no_option(tmp_path: Path) -> None:
    path = tmp_path / "binary.cfg"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigFileError, match=r"binary\.cfg: this is not a UTF-8 text"):
        instance([path], [], "safe", ProofBounds())
    with pytest.raises(ProveError, match="write name=value"):
        instance([], ["ume_store"], "safe", ProofBounds())
    with pytest.raises(OSError, match="No such file"):
        instance([tmp_path / "gone.cfg"], [], "safe", ProofBounds())
