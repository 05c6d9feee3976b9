"""The catalogue of rules and the judges agree: each id is declared once, judged by somebody, and stated once."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from stablecast.cli import rules as command
from stablecast.evidence.rules import JUDGES, RULES, RuleJudge, judges_of
from stablecast.evidence.rules.catalogue import PROPERTIES
from stablecast.evidence.rules.judges import (
    CAPTURES,
    MODELS,
    ONE_TRACE,
    SIMULATOR,
    TORTURE,
    TRACE_FORM,
    TRACES_TOGETHER,
)
from stablecast.evidence.trace import cross_rules
from stablecast.evidence.trace.reports import NOT_JUDGED
from stablecast.evidence.trace.trace_judge import TEXTS
from stablecast.lab.model import catalog
from tests.support.evidence import Evidence
from tests.support.tree import ROOT

EVIDENCE = ROOT / "adapters" / "stablecast" / "evidence"
SIM = ROOT / "adapters" / "stablecast" / "lab" / "sim"
ID = re.compile(r"[A-Z]\d")


def strings(*files: Path) -> Iterator[str]:
    """Return all string constants of the code, docstrings aside."""
    for file in files:
        tree = ast.parse(file.read_text(encoding="utf-8"))
        statements = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in statements:
                yield node.value


def ids(*files: Path) -> set[str]:
    """Return the rule ids that stand alone in strings of the code."""
    return {text for text in strings(*files) if ID.fullmatch(text)}


def reported(judge: RuleJudge) -> set[str]:
    trace = EVIDENCE / "trace"
    match judge.name:
        case ONE_TRACE.name:
            return ids(*(trace / f"{name}.py" for name in ENDPOINT_RULES))
        case TRACE_FORM.name:
            forms = {one for one in RULES if not ID.fullmatch(one)}
            return forms & set(strings(trace / "frame_judge.py", trace / "frame_link.py"))
        case TRACES_TOGETHER.name:
            return ids(trace / "cross_rules.py")
        case CAPTURES.name:
            return ids(*(EVIDENCE / "capture" / "judge").glob("*.py"))
        case SIMULATOR.name:
            return ids(*SIM.glob("*.py"))
        case MODELS.name:
            stated = {one.path: one.rule for one in PROPERTIES}
            return {stated[path] for path in Evidence.read(catalog.folder()).properties()}
        case TORTURE.name:
            return {rule for rule, checks in TORTURE.checks.items() if set(words(checks)) <= set(torture_words())}
    raise AssertionError(f"no way to read the judge {judge.name}")


ENDPOINT_RULES = ("endpoint_rules", "flight_rule", "progress_rule", "registration_rules", "retention_rules")


def words(checks: str) -> list[str]:
    """Return the names that the torture checker gives to a rule."""
    return checks.partition(":")[0].split(", ")


def torture_words() -> list[str]:
    """Return the names of the rules in the table of the torture checker."""
    text = ast.get_docstring(ast.parse((ROOT / TORTURE.place).read_text(encoding="utf-8"))) or ""
    return re.findall(r"^\| (\w+) \|", text, re.MULTILINE)[1:]


@pytest.mark.parametrize("judge", JUDGES, ids=[judge.name for judge in JUDGES])
def test_a_judge_reports_the_rules_that_it_is_registered_for(judge: RuleJudge) -> None:
    assert reported(judge) == set(judge.checks)


@pytest.mark.parametrize("judge", JUDGES, ids=[judge.name for judge in JUDGES])
def test_a_judge_names_rules_that_are_declared(judge: RuleJudge) -> None:
    assert set(judge.checks) <= set(RULES)


def test_every_declared_rule_has_a_judge() -> None:
    assert [rule for rule in RULES if not judges_of(rule)] == []


def test_no_two_rules_have_the_same_statement() -> None:
    statements = [rule.statement for rule in RULES.values()]
    assert len(set(statements)) == len(statements)
    assert all(key == rule.id for key, rule in RULES.items())


def test_every_rule_says_all_that_a_reader_needs() -> None:
    texts = [text for rule in RULES.values() for text in (rule.statement, rule.needs, rule.breaks, rule.remedy)]
    assert [text for text in texts if len(text) < 12 or not text.endswith(".")] == []


def test_a_rule_has_the_name_of_its_property() -> None:
    """E8 and the rules of the simulator alone have names of their own."""
    named: dict[str, set[str]] = {}
    for one in PROPERTIES:
        named.setdefault(one.rule, set()).add(one.name)
    assert {rule: RULES[rule].name for rule, names in named.items() if RULES[rule].name not in names} == {}
    names = [one.path for one in PROPERTIES]
    assert len(set(names)) == len(names)


def test_the_properties_are_those_that_configurations_check() -> None:
    assert {one.path for one in PROPERTIES} == Evidence.read(catalog.folder()).properties()


def test_the_torture_checker_names_what_the_catalogue_registers() -> None:
    assert sorted(word for checks in TORTURE.checks.values() for word in words(checks)) == sorted(torture_words())


def test_every_rule_across_endpoints_has_its_sentence() -> None:
    assert set(TEXTS) == set(TRACES_TOGETHER.checks)
    assert set(cross_rules.LOSSES) < set(TRACES_TOGETHER.checks)
    assert set(NOT_JUDGED) <= set(RULES)


def test_a_rule_that_nobody_declared_is_seen(tmp_path: Path) -> None:
    file = tmp_path / "judge.py"
    file.write_text('"""Z1."""\nreport("Z9", "text")\n', encoding="utf-8")
    assert ids(file) == {"Z9"}


def test_the_spec_shows_the_whole_catalogue() -> None:
    text = (ROOT / "spec" / "rules.md").read_text(encoding="utf-8")
    assert [rule.id for rule in RULES.values() if f"### {rule.title}\n\n{rule.statement}\n" not in text] == []


def test_json_lists_all_rules_with_their_judges(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.run(None, as_json=True) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [one["id"] for one in listed] == list(RULES)
    assert all({"id", "name", "statement", "judged_by"} <= one.keys() and one["judged_by"] for one in listed)


@pytest.mark.parametrize("asked", ["S1", "s1", "StableByQuorum"])
def test_one_rule_is_printed_with_what_to_do(asked: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.run(asked, as_json=False) == 0
    out = capsys.readouterr().out
    assert out.startswith("S1 StableByQuorum\n")
    assert "When it is broken: " in out
    assert "simulator (stablecast sim): " in out


def test_an_unknown_rule_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.run("Z9", as_json=False) == command.UNKNOWN
    assert "there is no rule 'Z9'" in capsys.readouterr().err


def test_the_list_has_every_rule(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.run(None, as_json=False) == 0
    out = capsys.readouterr().out
    assert [rule.title for rule in RULES.values() if rule.title not in out] == []
