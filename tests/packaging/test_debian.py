"""The sources of the Debian package. `spec/deployment.md` says how to build it, which takes a network and minutes."""

import re
import subprocess
from email import message_from_string

import pytest

from tests.support.left_out import needs
from tests.support.tree import ROOT
from tools.release.distributions import PROJECT

FOLDER = ROOT / "packaging/debian"


def test_the_newest_entry_is_the_release() -> None:
    """The changelog of the package names the release of the program, in the form that the tools of Debian read."""
    first, *_, last = (FOLDER / "changelog").read_text().rstrip().splitlines()
    assert first == f"stablecast ({PROJECT['version']}) unstable; urgency=medium"
    assert re.fullmatch(r" -- [^<]+ <[^>]+>  \w{3}, \d\d \w{3} \d{4} [\d:]{8} \+0000", last)


@needs("dpkg-parsechangelog")
def test_the_tools_of_debian_read_the_changelog() -> None:
    command = ["dpkg-parsechangelog", "--all", "-l", str(FOLDER / "changelog"), "-S", "Version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (done.stdout.split()[0], done.stderr) == (PROJECT["version"], "")


def test_the_control_file_describes_one_package() -> None:
    source, package = map(message_from_string, (FOLDER / "control").read_text().split("\n\n"))
    assert source["Source"] == package["Package"] == "stablecast"
    assert "${python:Depends}" in package["Depends"]
    assert all(line.startswith(" ") for line in package["Description"].splitlines()[1:])


def test_the_rules_install_files_that_exist() -> None:
    rules = (FOLDER / "rules").read_text()
    named = re.findall(r"packaging/[\w./*-]+", rules)
    assert len(named) >= 2
    for path in named:
        assert list(ROOT.glob(path)), path


@pytest.mark.parametrize("script", ["rules", "postinst"])
def test_scripts_parse(script: str) -> None:
    command = ["make", "-n", "clean", "-f"] if script == "rules" else ["sh", "-n"]
    subprocess.run([*command, str(FOLDER / script)], capture_output=True, check=True)
