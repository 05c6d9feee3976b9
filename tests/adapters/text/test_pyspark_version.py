"""A missing or an old PySpark is one sentence."""

import sys
from types import ModuleType

import pytest

from stablecast.text.pyspark_version import need_pyspark


def test_an_old_one_is_named_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pyspark", "pyspark.sql", "pyspark.sql.streaming"):
        old = ModuleType(name)
        old.__path__ = []
        monkeypatch.setitem(sys.modules, name, old)
    monkeypatch.setattr(sys.modules["pyspark"], "__version__", "4.1.1", raising=False)
    monkeypatch.delitem(sys.modules, "pyspark.sql.streaming.datasource", raising=False)
    with pytest.raises(ModuleNotFoundError, match=r"PySpark 4\.2 or newer, and this is 4\.1\.1: pip install -U"):
        need_pyspark()


def test_none_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'stablecast\[spark\]' \(pyspark is missing\)"):
        need_pyspark()
