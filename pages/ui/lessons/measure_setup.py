"""Defines what a measure is taken of: a model, a prompt, and changes to the model."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from pages.ui.lessons.expressions import ExpressionError
from pages.ui.models import library
from pages.ui.models.changes import read_changes
from transformer import TASKS, CheckpointError, Intervention, Tokenizer
from transformer.data.chat import Chat

FIELDS = ("model", "prompt", "text", "changes", "reads")
"""What makes a setup; the names are those of a link's parameters."""
DEFAULT_MODEL = "shakespeare"
MAX_TOKENS = 1_000
"""Of a text that a decoder reads; it may be longer than the context, of which the last tokens are then read."""


class MeasureError(ExpressionError):
    """Why something can't be measured, in a sentence without its full stop."""


class NotMeasurableYet(MeasureError):
    """What the visitor has to do before it can be measured, in a sentence without its full stop."""


@dataclass(frozen=True)
class Setup:
    """A model and what it reads. Two that are equal are measured once.

    Lessons are kept while models come and go, so nothing of the model is kept here.

    prompt: None for the model's first example. text: what stands after it. changes: as in a link. reads: whether the
    prompt is read in the model's chat template, if it has one ("chat"), or as it stands ("plain").
    """

    model: str = DEFAULT_MODEL
    prompt: str | None = None
    text: str = ""
    changes: str = ""
    reads: str = "chat"
    beside: str = ""
    """New words of a text that this one is compared with; they come before its own."""

    @classmethod
    def of(cls, link: Mapping[str, str], given: Mapping[str, str]) -> Self:
        """That of a view, less what is given instead. With another model come its own prompt, text and changes.

        Raises MeasureError for a prompt that is to be read in no way that there is.
        """
        own = {name: link[name] for name in FIELDS if name in link}
        if given.get("model", own.get("model")) != own.get("model"):
            own = {}
        setup = cls(**{**own, **{name: given[name] for name in FIELDS if name in given}})
        if setup.reads not in ("chat", "plain"):
            raise MeasureError(f"reads is chat or plain, not “{setup.reads[:20]}”")
        return setup

    @property
    def name(self) -> str:
        """The model's. Raises MeasureError if there is none of that name here."""
        if self.model not in library.usable():
            raise MeasureError(f"there is no model “{self.model[:40]}” here")
        try:
            library.model(self.model)
        except CheckpointError as error:
            raise MeasureError(f"the model “{self.model[:40]}” can't be opened: {error}") from None
        return self.model

    @property
    def tokenizer(self) -> Tokenizer:
        """The model's, with the new words of both texts."""
        return library.tokenizer(self.name).with_new_words([self.beside, self._typed, self.text])

    @property
    def _typed(self) -> str:
        examples = library.model(self.name).card.examples
        return self.prompt if self.prompt is not None else next(iter(examples), "")

    @property
    def read(self) -> tuple[int, ...]:
        """The prompt's tokens. Raises MeasureError for a text that the model can't read, or too long a one."""
        card, shape, prompt = library.model(self.name).card, library.config(self.name), self._typed
        if prompt.strip() and card.task in TASKS and (problem := TASKS[card.task].problem(prompt)):
            raise MeasureError(problem.rstrip("."))
        self._check_pieces(prompt)
        chat = Chat(**card.chat) if card.chat is not None and self.reads == "chat" and prompt else None
        tokens = tuple(chat.tokens(self.tokenizer, prompt) if chat else self.tokenizer.encode(prompt))
        most = shape.context_length if self._translates else MAX_TOKENS
        if not 0 < len(tokens) <= most:
            raise MeasureError(f"a prompt for {self.model} has 1 to {most} tokens, not {len(tokens)}")
        return tokens

    @property
    def source(self) -> tuple[int, ...]:
        """What the encoder reads; empty for a model that has none."""
        return self.read if self._translates else ()

    @property
    def tokens(self) -> tuple[int, ...]:
        """What the decoder has before it: the prompt, or a translator's start token, and the text after it."""
        start = library.model(self.name).card.start_tokens if self._translates else self.read
        self._check_pieces(self.text)
        tokens = (*start, *self.tokenizer.encode_continuation(self.text))
        most = library.config(self.name).context_length if self._translates else MAX_TOKENS
        if len(tokens) > most:
            raise MeasureError(f"a text for {self.model} has at most {most} tokens, not {len(tokens)}")
        return tokens

    @property
    def begin(self) -> int:
        """The position of the first token that the model reads to predict what follows: above 0 past the context."""
        return library.window_start(self.name, len(self.tokens))

    @property
    def window(self) -> tuple[int, ...]:
        """The tokens from there on."""
        return self.tokens[self.begin :]

    def position(self, position: int) -> int:
        """A position of the text, counted from 0, or from its end if negative. Raises MeasureError for none."""
        index = position + len(self.tokens) if position < 0 else position
        if not self.begin <= index < len(self.tokens):
            raise MeasureError(
                f"a position is from {self.begin} to {len(self.tokens) - 1} in this text, not {position}"
            )
        return index

    @property
    def interventions(self) -> tuple[Intervention, ...]:
        """What is changed in each pass. Raises MeasureError for what this model can't be changed by."""
        interventions, problems = read_changes(self.changes, library.config(self.name))
        if problems:
            raise MeasureError(f"a change doesn't fit {self.model}: {problems[0]}")
        return interventions

    def token(self, text: str) -> int:
        """The id of a token, as a lesson writes it. Raises MeasureError for what isn't one token."""
        tokenizer = self.tokenizer
        is_new = tokenizer.with_new_words([*tokenizer.new_words, text]).new_words != tokenizer.new_words
        if not is_new and not tokenizer.unknown_pieces(text) and len(ids := tokenizer.encode_continuation(text)) == 1:
            return ids[0]
        for token in range(min(tokenizer.vocab_size, 1000)):  # [end], say, which no text has
            if tokenizer.label(token) == text:
                return token
        raise MeasureError(f"“{text[:40]}” is no token of {self.model}")

    def label(self, token: int) -> str:
        """A token as pages show it."""
        return self.tokenizer.label(token)

    @property
    def fills_masks(self) -> bool:
        """Whether the model reads in both directions: it predicts what a mask hides, not what comes next."""
        return not library.config(self.name).is_causal

    @property
    def asked_position(self) -> int:
        """Where the logits are that the text is given for: at the last token, or an encoder's first mask."""
        return library.model(self.name).predicted_position(self.tokens)

    @property
    def _translates(self) -> bool:
        return library.config(self.name).architecture == "encoder-decoder"

    def _check_pieces(self, text: str) -> None:
        if unknown := self.tokenizer.unknown_pieces(text):
            seen = f"{self.model} has never seen “{unknown[0].text[:20]}”.{self.tokenizer.limit}"
            raise MeasureError(seen.rstrip("."))
