"""What torch's authors wrote above an option, as one short line."""

import ast
import io
import re
import tokenize

_LONGEST = 140
_TOO_SHORT = 15
_FOR_TOOLS = re.compile(r"#\s*(type:|pyrefly:|noqa|pyre-|mypy:|lint|@).*", re.IGNORECASE)
_NO_MEANING = re.compile(r"(TODO|FIXME|XXX|NOTE:?\s*$|See |https?:)", re.IGNORECASE)


class Comments:
    """The comments of a source by line."""

    def __init__(self, text: str) -> None:
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        self._lines = text.splitlines()
        self._comments = {
            token.start[0]: _FOR_TOOLS.sub("", token.string).lstrip("#").strip()
            for token in tokens
            if token.type == tokenize.COMMENT
        }

    def above(self, node: ast.Assign | ast.AnnAssign) -> str | None:
        """The first sentence of the comment right above a statement, else of the one behind it."""
        line = node.lineno - 1
        block: list[str] = []
        while line in self._comments and self._lines[line - 1].lstrip().startswith("#"):
            block.insert(0, self._comments[line])
            line -= 1
        behind = self._comments.get(node.end_lineno or node.lineno, "")
        return _first_sentence(block) or _first_sentence([behind])


def _first_sentence(block: list[str]) -> str | None:
    paragraph: list[str] = []
    for line in block:
        if paragraph and not line:
            break
        if line and not _NO_MEANING.match(line):
            paragraph.append(line)
    text = re.sub(r"\s+", " ", " ".join(paragraph))
    sentences = re.split(r"(?<=[^.]\w[.!?;])\s|: (?=[-\[\"0-9])", text)
    # "DEPRECATED." alone says too little.
    sentence = " ".join(sentences[: 2 if len(sentences[0]) < _TOO_SHORT else 1]).strip().rstrip(".:;")
    if len(sentence) <= 3:
        return None
    if len(sentence) > _LONGEST:
        sentence = sentence[: _LONGEST - 1].rsplit(" ", 1)[0] + "…"
    return sentence
