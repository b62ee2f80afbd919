"""The first half of the page Train: what to learn from, what to train, what it will cost."""

from __future__ import annotations

import hashlib
import math
import re
from dataclasses import dataclass

import streamlit as st

from pages.ui.frame import widgets
from pages.ui.frame.choices import Visitor
from pages.ui.frame.state import visitor
from pages.ui.markdown import architecture, plain
from pages.ui.models import own_training as training
from pages.ui.models.session_store import session_record
from transformer import TASKS, Corpus, CorpusError, ModelConfig, TrainingConfig, load_corpus
from transformer.data.corpora import SHORTEST_TEXT, SOURCES, is_at_hand, text_corpus
from transformer.data.tasks import START
from transformer.training.baselines import bigram_loss
from transformer.training.cost import parameter_count, training_memory, training_seconds
from transformer.training.objectives import Objective, TaskObjective, TextObjective
from transformer.training.plan import Plan
from transformer.training.presets import PRESETS, RUNGS, Preset
from transformer.training.quick_presets import QUICK

LEARN = {"task": "A task", "text": "A text", "own": "My own text"}
SHAPES = {"quick": "Suggested", "rung": "From a ladder", "dials": "My own"}
RUNG_TITLES = {preset.name: f"{preset.group}, {preset.title}" for rungs in RUNGS.values() for preset in rungs}
HEADS, WIDTHS, CONTEXTS = (1, 2, 4, 8), (16, 32, 48, 64, 96, 128, 192), (8, 16, 32, 64, 128)
LONGEST_SECONDS, LARGEST_MEMORY = 1200, 500e6
"""What one training may take on a machine that others share."""
LONGEST_NAME = 80
"""Characters of a text's file name that are kept: it becomes part of the model's title."""
UNKNOWN_VOCABULARY = 100
"""Characters assumed of a text that isn't here yet."""
LONGEST_EXAMPLE = 24
"""Characters of a text that the model's card suggests as a prompt, where its context holds as many."""
SNAPSHOTS = 40
PROBES = {
    "next-vowel": ("bcd", ""),
    "number-words": ("seven hundred and seventy-seven thousand one hundred and twelve",
                     "setecientos setenta y siete mil ciento doce"),
    "sort-letters": ("transform=", "afmnorrst"),
    "induction": ("kR7wZq3xB kR7wZ", "q3xB kR7wZq3xB"),
    "stories": ("Mary took the ball. She went to the garden. Tom ran to the park. Where is the ball?", "garden"),
}  # fmt: skip
"""The fixed text of each task whose attention is watched: what is read, and what should be written after it."""


@dataclass(frozen=True)
class Choice:
    """What is to be trained on what; `corpus` is None for a task, or while a text still has to be downloaded."""

    learn: str
    """A task's or a corpus's name; "own-text" for the visitor's own."""
    corpus: Corpus | None
    config: ModelConfig
    training: TrainingConfig
    batch: int

    @property
    def is_task(self) -> bool:
        return self.learn in TASKS

    @property
    def title(self) -> str:
        if self.is_task:
            return TASKS[self.learn].title
        return self.corpus.source.title if self.corpus else SOURCES[self.learn].title


def choose() -> Choice | None:
    """The dials, and what they choose; None while that can't be trained, after saying why."""
    current = visitor()
    with st.container(border=True):
        st.header("What to learn from", anchor=False)
        widgets.segmented_control("Kind", LEARN, "learn", LEARN.get, label_visibility="collapsed")
        try:
            learn, corpus = _subject(current)
        except CorpusError as error:
            st.error(plain(str(error)))
            return None
        if learn is None:
            return None
    with st.container(border=True):
        st.header("What to train", anchor=False)
        is_task = learn in TASKS
        shapes = [shape for shape in SHAPES if not (is_task and shape == "rung")]
        if current.shape not in shapes:
            current.shape = "quick"
        widgets.segmented_control("Shape", shapes, "shape", SHAPES.get, label_visibility="collapsed")
        try:
            return _shaped(current, learn, corpus)
        except ValueError as error:
            st.error(plain(str(error)))
            return None


def costs(choice: Choice) -> bool:
    """What a choice will cost, in words; returns whether this machine can bear it."""
    seconds = training_seconds(choice.config, choice.batch, choice.training.steps)
    memory = training_memory(choice.config, choice.batch)
    left, middle, right = st.columns(3)
    left.metric("Parameters", f"{parameter_count(choice.config):,}")
    middle.metric("Memory", f"{memory / 1e6:.0f} MB")
    right.metric("Time, estimated", in_words(seconds),
                 help="An estimate, from a short measurement of this machine. While the machine is busy, training "
                      "takes longer; once it runs, the time left is told by its real speed.")  # fmt: skip
    if seconds > LONGEST_SECONDS or memory > LARGEST_MEMORY:
        st.error(f"That is more than one visitor's share of this machine: at most {in_words(LONGEST_SECONDS)} and "
                 f"{LARGEST_MEMORY / 1e6:.0f} MB. Choose fewer steps, or a smaller model.")  # fmt: skip
        return False
    return True


def start(choice: Choice) -> bool:
    """Begin the training; returns False after saying why it can't begin."""
    try:
        with st.spinner("Getting ready …"):
            plan = _plan(choice)
            decode = plan.objective.tokenizer.decode
            source = f"{decode(plan.probe_source)} → " if plan.probe_source else ""
            begun = source + decode(plan.sample_prompt)
            training.begin(plan, _references(plan), source + decode(plan.probe_tokens), begun)
            visitor().snapshot = None
    except (CorpusError, ValueError) as error:
        st.error(plain(str(error)))
        return False
    return True


def in_words(seconds: float) -> str:
    """A duration that is estimated, rounded as it should be."""
    if seconds < 57.5:
        return f"{max(5 * round(seconds / 5), 5)} seconds"
    minutes = round(seconds / 60)
    return f"{minutes} minute{'' if minutes == 1 else 's'}"


def _subject(current: Visitor) -> tuple[str | None, Corpus | None]:
    if current.learn == "task":
        widgets.selectbox("Task", TASKS, "task", lambda name: TASKS[name].title)
        st.caption(TASKS[current.task].summary)
        return current.task, None
    if current.learn == "own":
        corpus = _own_text(current)
        return (corpus.source.name, corpus) if corpus else (None, None)
    if current.corpus is None:
        current.corpus = next(name for name in SOURCES if is_at_hand(name))  # the last one always is
    widgets.selectbox("Text", SOURCES, "corpus", lambda name: SOURCES[name].title)
    if not is_at_hand(current.corpus):
        st.caption("It isn't on this machine yet: it will be downloaded, and checked, when training starts.")
        return current.corpus, None
    corpus = _corpus(current.corpus)
    st.caption(f"{len(corpus.text):,} characters, {corpus.source.language}. "
               f"The last {1 - corpus.source.train_fraction:.0%} are held out to validate on.")  # fmt: skip
    return current.corpus, corpus


def _own_text(current: Visitor) -> Corpus | None:
    uploaded = st.file_uploader("A text file, UTF-8, 1 kB to 5 MB", type=None, key="text_file", max_upload_size=5,
                                on_change=_take_upload)  # fmt: skip
    name, content = session_record().uploaded_text or ("", b"")
    if name and uploaded is None:  # the page was left, or reloaded, since
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.caption(f"{plain(name)}, which you uploaded before, is still here.", width="content")
            st.button("Remove it", icon=":material/close:", key="remove_text", on_click=_remove_upload)
    widgets.text_area("Or paste a text", "own_text", height=160)
    if current.own_text.strip():
        name, content = "Your text", current.own_text
    if not content:
        st.info(f"Upload a file or paste a text of at least {SHORTEST_TEXT:,} bytes, about half a page: a book "
                "chapter, song lyrics, code.")  # fmt: skip
        return None
    corpus = _checked_text(content, name)
    st.caption(f"{plain(name)}: {len(corpus.text):,} characters, {len(set(corpus.text))} different ones.")
    return corpus


def _take_upload() -> None:
    """Called back when a file is uploaded or removed, and not when the page is left, which empties the box as well."""
    uploaded = st.session_state["text_file"]
    session_record().uploaded_text = (uploaded.name[:LONGEST_NAME], uploaded.getvalue()) if uploaded else None


def _remove_upload() -> None:
    session_record().uploaded_text = None


def _shaped(current: Visitor, learn: str, corpus: Corpus | None) -> Choice:
    """The chosen architecture. Raises ValueError for one that can't be."""
    preset = _quick(learn)
    if current.shape == "rung":
        widgets.selectbox("Rung", RUNG_TITLES, "rung", RUNG_TITLES.get)
        preset = PRESETS[current.rung]
    fields, recipe, batch = dict(preset.shape), preset.training, preset.batch
    if current.shape == "dials":
        fields, recipe, batch = _dials(current, preset, learn)
    config = ModelConfig(**fields | _decided(learn, corpus, fields))
    if current.shape != "dials":
        st.caption(f"{_first_sentence(preset.summary)}. {architecture(config).capitalize()}, "
                   f"{recipe.steps:,} steps of {batch} {'examples' if learn in TASKS else 'windows'}.")  # fmt: skip
    if corpus and len(corpus.split()[1]) <= config.context_length:
        raise ValueError(f"The text is too short for a context of {config.context_length}: the part held out has only "
                         f"{len(corpus.split()[1])} characters. Choose a smaller context, or more text.")  # fmt: skip
    return Choice(learn, corpus, config, recipe, batch)


def _first_sentence(text: str) -> str:
    """Without its full stop, which is not that of *Su et al. 2021*."""
    return re.split(r"\.(?: (?=[A-Z])|$)", text, maxsplit=1)[0]


def _dials(current: Visitor, preset: Preset, learn: str) -> tuple[dict, TrainingConfig, int]:
    left, middle, right = st.columns(3)
    with left:
        widgets.slider("Layers", 1, 6, "n_layers")
    with middle:
        widgets.select_slider("Heads", HEADS, "n_heads")
    with right:
        widgets.select_slider("Width (d_model)", WIDTHS, "d_model")
    left, middle, right = st.columns(3)
    if learn not in TASKS:
        with left:
            widgets.select_slider("Context", CONTEXTS, "context")
    with middle:
        widgets.selectbox("Positions", ["sinusoidal", "learned", "rotary", "none"], "positions")
    with right:
        widgets.selectbox("Norm", ["pre", "post"], "norm", "{}-norm".format)
    widgets.slider("Steps", 50, 3000, "steps", step=50)
    context = TASKS[learn].longest if learn in TASKS else current.context
    batch = preset.batch if learn in TASKS else min(max(1024 // context, 8), 64)
    fields = {
        "n_layers": current.n_layers,
        "n_heads": current.n_heads,
        "d_model": current.d_model,
        "context_length": context,
        "positions": current.positions,
        "norm": current.norm,
        "scale_embeddings": current.positions == "sinusoidal",
    }
    rate = 2e-2 * math.sqrt(64 / max(current.d_model, 64))  # wider models bear less
    training_config = TrainingConfig(steps=current.steps, learning_rate=rate, warmup_steps=min(20, current.steps // 5),
                                     optimizer="muon", momentum=0.9, weight_decay=0.01, seed=1)  # fmt: skip
    return fields, training_config, batch


def _quick(learn: str) -> Preset:
    """The preset that suits a task or a text."""
    return next(preset for preset in QUICK.values() if learn in (preset.task, preset.corpus))


def _decided(learn: str, corpus: Corpus | None, fields: dict) -> dict:
    """The fields that task or text decide."""
    if learn in TASKS:
        return TaskObjective(TASKS[learn], 1, 0).shape
    return {"vocab_size": len(set(corpus.text)) if corpus else UNKNOWN_VOCABULARY}


def _plan(choice: Choice) -> Plan:
    """All that a job needs. Raises CorpusError if a text is not available."""
    corpus = choice.corpus
    if corpus is None and not choice.is_task:
        bar = st.progress(0.0, "Downloading …")
        corpus = load_corpus(choice.learn, progress=lambda done, total: bar.progress(min(done / max(total, 1), 1.0)))
    objective = _objective(choice, corpus)
    config = ModelConfig(**choice.config.to_dict() | objective.shape)
    tokens, source, prompt = _probe(choice, objective, config)
    return Plan(
        objective=objective,
        config=config,
        training=choice.training,
        title=f"{choice.title}, {choice.training.steps:,} steps",
        summary=TASKS[choice.learn].summary if choice.is_task else f"Has read {corpus.source.title}.",
        examples=_examples(choice, corpus),
        probe_tokens=tokens,
        probe_source=source,
        sample_prompt=prompt,
        snapshots=SNAPSHOTS,
        evaluate_every=max(choice.training.steps // 10, 1),
    )


def _references(plan: Plan) -> dict[str, float]:
    """Losses to compare with: of a guess among all tokens alike, and for a text of the best table of pairs."""
    found = {"uniform guess": math.log(plan.config.vocab_size)}
    if isinstance(plan.objective, TextObjective):
        _, found["bigram"] = bigram_loss(plan.objective.train, plan.objective.validation, plan.config.vocab_size)
    return found


def _objective(choice: Choice, corpus: Corpus | None) -> Objective:
    if choice.is_task:
        return TaskObjective(TASKS[choice.learn], choice.batch, choice.training.seed)
    return TextObjective(corpus, choice.config.context_length, choice.batch, choice.training.seed)


def _probe(choice: Choice, objective: Objective, config: ModelConfig) -> tuple[tuple[int, ...], ...]:
    """The fixed text whose attention is watched, what an encoder reads, and what samples continue."""
    encode = objective.tokenizer.encode
    if not choice.is_task:
        held_out = _from_a_paragraph(objective.corpus.split()[1], config.context_length)
        words = held_out[:16].rsplit(maxsplit=1) or [held_out[:16]]  # the last may be cut in two
        return tuple(encode(held_out[: min(config.context_length, 32)])), (), tuple(encode(words[0]))
    source, target = (tuple(encode(text)) for text in PROBES[choice.learn])
    if config.architecture == "decoder-only":
        return source + target, (), source
    start = (objective.tokenizer.special_id(START),)
    return start + target, source, start


def _from_a_paragraph(text: str, least: int) -> str:
    """A text from its second paragraph on, else its second line, if that leaves `least` characters; else all of it."""
    for end in ("\n\n", "\n"):
        rest = text.partition(end)[2].lstrip()
        if len(rest) >= least:
            return rest
    return text


def _examples(choice: Choice, corpus: Corpus | None) -> list[str]:
    if not choice.is_task:
        held_out, length = corpus.split()[1], min(LONGEST_EXAMPLE, choice.config.context_length)
        return [held_out[at : at + length] for at in range(0, min(len(held_out) - length, 4000), 1000)]
    return next(list(preset.examples) for preset in PRESETS.values() if preset.task == choice.learn)


@st.cache_resource(max_entries=4, show_spinner="Reading …")
def _corpus(name: str) -> Corpus:
    return load_corpus(name)


def _checked_text(content: bytes | str, name: str) -> Corpus:
    raw = content.encode(errors="replace") if isinstance(content, str) else content
    key = hashlib.sha256(raw).hexdigest(), name
    found = st.session_state.get("own_corpus")
    if found is None or found[0] != key:
        st.session_state["own_corpus"] = found = (key, text_corpus(content, name))
    return found[1]
