"""Every seeded bug still has its place in the code; `make mutants` sees that each is caught."""

import pytest

from tests.mutants.__main__ import ROOT
from tests.mutants.catalogue import MUTANTS


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.breaks)
def test_a_seeded_bug_has_exactly_one_place(mutant):
    source = (ROOT / "hq" / "domain" / mutant.file).read_text()

    assert source.count(mutant.text) == 1
    compile(source.replace(mutant.text, mutant.becomes), mutant.file, "exec")


def test_there_are_at_least_twenty():
    assert len({mutant.breaks for mutant in MUTANTS}) >= 20
