"""Finds heads that look from one word of an English text to another that belongs to it.

A word is some tokens: those whose share of the text (`Tokenizer.pieces`) has letters of it. Shapes: query, key.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice

import torch
from torch import Tensor

from ..data.tokenizers import Tokenizer
from ..inference.head_measures import targets_in
from ..model.models import Model
from ..model.registry import pattern_names

RELATIONS = {
    "quotation": "a closing quotation mark looks at the opening one",
    "inside": "a token inside a quotation looks at the mark that opened it",
    "piece": "from its third piece on, a word looks at its first",
    "pronoun": "he and she look at the man and the woman that were named last",
    "subject": "was, had, would look at the last name or pronoun of the sentence, where that isn't the word before",
    "previous": "a token looks at the one before it",
    "same": "a token looks at the same one, earlier",
    "induction": "a token looks at what came after the same one, earlier",
}
"""What a head may do, in words."""
LONGEST, PASSAGES, EXAMPLES = 48, 400, 3
"""Tokens of a passage; passages that are read, and of these, how many are named for a relation."""
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_SENTENCE = re.compile(r'[^\n]+?(?:(?<!\bMr)(?<!\bMrs)(?<!\bDr)[.!?]+["”]?(?=\s)|(?=\n)|$)')
_MARKS = re.compile(r'(?P<opening>(?<![^\s(—-])["“](?=\w))|["“”]')
_PARTS = re.compile('[.;:!?"“”]')
PRONOUNS = {"he": "he him his himself", "she": "she her hers herself"}
TITLES = {"he": "Mr Sir Captain Colonel Admiral", "she": "Mrs Miss Lady"}
NAMES = {
    "he": "Charles Darcy Edmund Edward Frank Frederick Henry James John Tom Walter Wentworth William Willoughby",
    "she": "Anne Catherine Charlotte Elinor Elizabeth Emma Fanny Harriet Isabella Jane Louisa Lydia Marianne Mary",
}
SUBJECTS = "i he she it we you they"
VERBS = "was were is are had has would could should did might must"
"""What words tell, as far as a list can."""
_SEX_BY_PRONOUN, _SEX_BY_TITLE, _SEX_BY_NAME = (
    {word: sex for sex, words in listed.items() for word in words.split()} for listed in (PRONOUNS, TITLES, NAMES)
)


@dataclass(frozen=True)
class RelationMeasure:
    """The head that does most of one of the `RELATIONS`."""

    relation: str
    layer: int
    head: int
    weight: float
    """The mean, over all tokens that have something to look at, of its weight on that."""
    even: float
    """The same of a head that spreads its weight evenly."""
    tokens: int
    examples: list[str]
    """The passages in which it has most of such weight more than an even head."""


def measure_relations(model: Model, tokenizer: Tokenizer, text: str) -> list[RelationMeasure]:
    """For each relation that the passages of a text have, the head that does most of it. Each is read by itself, as a
    prompt is."""
    if not (names := pattern_names(model.config)):
        return []
    found = defaultdict(list)
    for passage in islice(passages(tokenizer, text, min(LONGEST, model.config.context_length)), PASSAGES):
        ids = torch.tensor(tokenizer.encode(passage))
        with torch.no_grad():
            _, cache = model.run_with_cache(ids[None], names_filter=names)
        patterns = torch.cat([*cache.values()])  # (layer, head, query, key)
        related = relations_in(tokenizer.pieces(ids.tolist()))
        for name, target in {**targets_in(ids, False), **related}.items():
            queries = target.any(-1)
            if name in RELATIONS and queries.any():
                seen = torch.arange(1, len(ids) + 1)
                even = (target.sum(-1) / seen)[queries]
                found[name].append((passage, (patterns * target).sum(-1)[..., queries], even))
    return [_best(name, found[name]) for name in RELATIONS if name in found]


def _best(name: str, found: list[tuple[str, Tensor, Tensor]]) -> RelationMeasure:
    weights = torch.cat([on for _, on, _ in found], -1)
    even = torch.cat([even for _, _, even in found])
    mean = weights.mean(-1)
    layer, head = divmod(int(mean.argmax()), mean.shape[1])
    more = [float((on[layer, head] - even).sum()) for _, on, even in found]
    order = sorted(range(len(found)), key=more.__getitem__, reverse=True)
    examples = [found[at][0] for at in order[:EXAMPLES]]
    return RelationMeasure(name, layer, head, float(mean.max()), float(even.mean()), len(even), examples)


def passages(tokenizer: Tokenizer, text: str, longest: int) -> Iterator[str]:
    """Sentences that follow one another in a line, as many as have at most so many tokens; longer ones are left out."""
    for line in text.splitlines():
        passage = ""
        for sentence in _SENTENCE.findall(line):
            more = f"{passage}{sentence}".strip()
            if len(tokenizer.encode(more)) > longest:
                if passage:
                    yield passage
                fits = len(tokenizer.encode(sentence.strip())) <= longest
                more = sentence.strip() if fits else ""
            passage = more
        if passage:
            yield passage


def relations_in(pieces: Sequence[str]) -> dict[str, Tensor]:
    """Which keys each query would look at, in a text of these tokens: (query, key) by the relation.

    quotation: a token with a closing mark, and that with the opening one. inside: those between the two, and the same.
        piece: a word's third token or a later one, and its first; the second has it right before it. pronoun: the
        tokens of *he*, *him*, *his*, and those of the man who was named last, after one of the `TITLES` or as one of
        the `NAMES`; the same of women. subject: the tokens of one of the `VERBS`, and those of the last name or
        pronoun, if another word stands between, but neither another such verb nor the end of a sentence or of a
        quotation.
    """
    text, ends = "".join(pieces), list(accumulate(map(len, pieces)))
    nothing = torch.zeros(len(pieces), len(pieces), dtype=torch.bool)
    made = {name: nothing.clone() for name in ("quotation", "inside", "piece", "pronoun", "subject")}

    def tokens_at(start: int, end: int) -> list[int]:
        return list(range(bisect_right(ends, start), bisect_right(ends, end - 1) + 1))

    def relate(name: str, queries: Sequence[int], keys: Sequence[int]) -> None:
        for query in queries:
            made[name][query, [key for key in keys if key < query]] = True

    opening: list[int] = []
    for mark in _MARKS.finditer(text):
        tokens = tokens_at(*mark.span())
        if opening and not mark["opening"]:
            relate("quotation", tokens, opening)
            relate("inside", range(opening[-1] + 1, tokens[0]), opening)
        opening = tokens if mark["opening"] else []
    named: dict[str, list[int]] = {}
    subject, title, end = None, None, 0
    for number, word in enumerate(_WORD.finditer(text)):
        tokens, written = tokens_at(*word.span()), word[0].lower()
        relate("piece", tokens[2:], tokens[:1])
        if title is None and _PARTS.search(text, end, word.start()):
            subject = None
        sex = title if title and word[0][0].isupper() else _SEX_BY_NAME.get(word[0])
        title, end = _SEX_BY_TITLE.get(word[0]), word.end()
        if sex:
            named[sex] = tokens
        elif of := _SEX_BY_PRONOUN.get(written):
            relate("pronoun", tokens, named.get(of, []))
        if written in VERBS.split():
            if subject and number - subject[0] > 1:
                relate("subject", tokens, subject[1])
            subject = None
        elif sex or written in SUBJECTS.split():
            subject = number, tokens
    return made
