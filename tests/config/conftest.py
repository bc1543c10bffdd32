"""A configuration file, written and loaded."""

import pytest

from hq.config import load


@pytest.fixture
def load_file(tmp_path):
    """Load a configuration file with this text; it is called hq.toml."""

    def _load(text, environment=None, flags=None):
        file = tmp_path / "hq.toml"
        file.write_text(text, encoding="utf-8")
        return load(file, environment=environment or {}, flags=flags or {})

    return _load
