"""The table of settings: names, defaults, help."""

from __future__ import annotations

import pytest

from thinkback.model.target import Settings
from thinkback.settings import KEYS


@pytest.mark.parametrize(
    ("name", "default"),
    [
        pytest.param("reasoning.enabled", True, id="enabled"),
        pytest.param("reasoning.includeInContext", False, id="includeInContext"),
        pytest.param("reasoning.includeInResponse", True, id="includeInResponse"),
        pytest.param("reasoning.format", "field", id="format"),
        pytest.param("reasoning.stripFromContext", "none", id="stripFromContext"),
        ("reasoning.foreign", "drop"),
        ("reasoning.effort", None),
        ("reasoning.maxTokens", None),
        ("reasoning.keepLast", None),
    ],
)
def test_a_key_has_its_built_in_default(name: str, default: object) -> None:
    """The built-in defaults are the conservative ones of the specification."""
    assert default == KEYS[name].default


def test_the_table_and_the_struct_name_the_same_settings() -> None:
    """Each key is one field of ``Settings`` with the same default, and no field is without a key."""
    fields = {key.field: key.default for key in KEYS.values()}
    told = {
        "carry",
        "client",
        "client_reasons",
        "explicit",
        "params",
    }  # what the layers say of themselves, and fields of the request
    assert {name: getattr(Settings(), name) for name in Settings.__struct_fields__ if name not in told} == fields


def test_every_key_has_one_sentence_of_help() -> None:
    """Help is shown per key, so each row has a single sentence that ends in a full stop."""
    assert [] == [key.name for key in KEYS.values() if not key.help.endswith(".") or ". " in key.help]
