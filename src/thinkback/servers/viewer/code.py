"""Code as HTML with its words, texts and remarks marked.

Promises: what is hostile is only characters, and costs little: a text that is long, or of a language whose reader takes
long over some texts, stands as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

from markupsafe import Markup, escape
from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, Generic, Keyword, Name, Number, String, _TokenType

LONGEST = 4_000
LANGUAGES: Mapping[str, str] = {
    **dict.fromkeys(("python", "py", "python3"), "python"),
    **dict.fromkeys(("javascript", "js", "jsx", "typescript", "ts", "tsx"), "javascript"),
    **dict.fromkeys(("bash", "sh", "shell", "zsh"), "bash"),
    **{name: name for name in ("json", "yaml", "toml", "ini", "sql", "css", "go", "rust", "java", "c", "diff")},
    **{"yml": "yaml", "rs": "rust", "golang": "go", "cpp": "cpp", "c++": "cpp"},
}
_CLASSES: Mapping[_TokenType, str] = {
    Comment: "c",
    Keyword: "k",
    String: "s",
    Number: "n",
    Name.Function: "f",
    Name.Class: "f",
    Name.Decorator: "f",
    Name.Tag: "k",
    Generic.Inserted: "i",
    Generic.Deleted: "d",
}


@lru_cache(maxsize=256)
def coloured(text: str, language: str) -> Markup:
    """``text``, which is code in ``language``."""
    if len(text) > LONGEST or language not in LANGUAGES:
        return escape(text)
    return Markup("").join(_marked(text, LANGUAGES[language]))


def _marked(text: str, language: str) -> Iterator[Markup]:
    """Its pieces, those of one kind together."""
    lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    kept, held = "", ""
    for token, piece in lexer.get_tokens(text):
        kind = _class_of(token)
        if kind != kept and held:
            yield _span(kept, held)
            held = ""
        kept, held = kind, held + piece
    yield _span(kept, held)


def _class_of(token: _TokenType) -> str:
    while token:
        if token in _CLASSES:
            return _CLASSES[token]
        token = token.parent
    return ""


def _span(kind: str, text: str) -> Markup:
    return Markup("<span class={}>{}</span>").format(f"h-{kind}", text) if kind else escape(text)
