"""Draws the page Train before a training: data, architecture, cost, and start."""

import hashlib
import math
import re

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.ui.components.events import to_its_end
from pages.ui.components.loss_chart import loss_chart
from pages.ui.frame import widgets
from pages.ui.frame.widgets import Binding
from pages.ui.host.exchange import change, page_state
from pages.ui.markdown import architecture, plain
from pages.ui.session import visitor_models
from pages.ui.session import visitor_training as training
from pages.ui.session.session_store import session_record
from pages.ui.upload_limits import has_lapsed
from pages.ui.views.side_by_side import side_by_side
from pages.ui.views.train_plan import Choice, excerpt, plan_of, probe_in_words, references, uniform_guess
from transformer import TASKS, Corpus, CorpusError, ModelConfig, TrainingConfig, load_corpus
from transformer.data.corpora import SHORTEST_TEXT, SOURCES, is_at_hand, text_corpus
from transformer.training.cost_estimate import parameter_count, training_memory, training_seconds
from transformer.training.objectives import TaskObjective
from transformer.training.presets import PRESETS, RUNGS, Preset
from transformer.training.quick_presets import QUICK

LEARN = {"task": "A task", "text": "A text", "own": "My own text"}
SHAPES = {"quick": "Suggested", "rung": "From a ladder", "dials": "My own"}
RUNG_TITLES = {preset.name: f"{preset.group}, {preset.title}" for rungs in RUNGS.values() for preset in rungs}
HEADS, WIDTHS, CONTEXTS = (1, 2, 4, 8), (16, 32, 48, 64, 96, 128, 192), (8, 16, 32, 64, 128)
LONGEST_SECONDS, LARGEST_MEMORY = 1200, 500e6
"""Limits of one training, as visitors share the machine."""
FASTEST, SLOWEST = 0.5, 3
"""Factors of the estimated time within which trainings were measured to end."""
LONGEST_NAME = 80
"""Characters of a file's name that become part of the model's title."""
UNKNOWN_VOCABULARY = 100
"""The vocabulary that is assumed of a text before it is downloaded."""
EXCERPT = 280
"""Characters of a text that the page shows."""
PRESSED = "train_pressed"
"""Key of the session: whether *Train* was pressed. The run then starts the training, or says what is in its way."""
_corpus = st.cache_resource(max_entries=4, show_spinner="Reading …")(load_corpus)


def show() -> None:
    """Draw the settings and the button *Train*, and beside them an empty chart and an excerpt of the data."""
    settings, chart, text = side_by_side("train", 3)
    with settings:
        st.header("Training data", anchor=False)
        subject, starts, details = st.container(), st.container(), st.container()
        choice = _choose(subject, details)
        with starts:  # above the details, to stay in sight when these are unfolded
            bearable = choice is not None and _costs(choice)
            if problem := visitor_models.storage_problem():
                st.info(f"{problem} Otherwise the trained model can only be downloaded.")
            widgets.button(
                "Train", _press, type="primary", icon="model_training", disabled=not bearable, width="stretch"
            )
            if st.session_state.pop(PRESSED, False) and bearable and choice is not None and _start(choice):
                st.rerun()
    if choice is not None:
        _preview(choice, chart, text)


def _press() -> None:
    st.session_state[PRESSED] = True


def _choose(subject: DeltaGenerator, details: DeltaGenerator) -> Choice | None:
    """Draw the dials, and return what they choose; None if it can't be trained, after saying why."""
    with subject:
        kind = widgets.segmented_control("Kind", LEARN, "learn", LEARN.__getitem__, label_visibility="collapsed")
        try:
            learn, corpus = _subject(kind)
        except CorpusError as error:
            st.error(plain(str(error)))
            return None
    if learn is None:
        return None
    shapes = [shape for shape in SHAPES if not (learn in TASKS and shape == "rung")]
    if page_state().shape not in shapes:
        change(shape=None)
    with details.expander("Size and steps", icon=":material/tune:", expanded=page_state().shape != "quick"):
        shape = widgets.segmented_control("Shape", shapes, "shape", SHAPES.__getitem__, label_visibility="collapsed")
        try:
            choice, summary = _shaped(shape, learn, corpus)
        except ValueError as error:
            st.error(plain(str(error)))
            return None
    with details:
        st.caption(f"{summary}{_settings(choice)}")
    return choice


def _preview(choice: Choice, chart: DeltaGenerator, text: DeltaGenerator) -> None:
    """Show the loss of a uniform guess, where training starts, and an excerpt of the data."""
    known = choice.is_task or choice.corpus is not None
    with chart:
        st.header("Loss", anchor=False)
        loss_chart(
            key="loss",
            train=(),
            validation=(),
            references=uniform_guess(choice.config.vocab_size) if known else {},
            steps=choice.training.steps,
            here=None,
        )
        if known:
            st.caption("An untrained model starts near the dotted line: every token equally likely.")
    if known:
        with text:
            st.header("An excerpt", anchor=False)
            piece = excerpt(choice.corpus.split()[0], EXCERPT) if choice.corpus else probe_in_words(choice.learn)
            st.code(piece, language=None, wrap_lines=True)


def _costs(choice: Choice) -> bool:
    """Say what a training will cost; return whether that is within the limits."""
    seconds = training_seconds(choice.config, choice.batch, choice.training.steps)
    memory = training_memory(choice.config, choice.batch)
    with st.container(horizontal=True):
        st.metric("Parameters", f"{parameter_count(choice.config):,}", width="content")
        st.metric("Memory", f"{memory / 1e6:.0f} MB", width="content")
        st.metric(
            "Time, estimated",
            range_in_words(seconds * FASTEST, seconds * SLOWEST),
            width="content",
            help="From a short measurement on this machine. Training takes longer while the machine is busy: once it "
            "runs, the time left is told at its own speed.",
        )
    if seconds > LONGEST_SECONDS or memory > LARGEST_MEMORY:
        st.error(
            f"This is above the limit of {in_words(LONGEST_SECONDS)} and "
            f"{LARGEST_MEMORY / 1e6:.0f} MB. Choose fewer steps, or a smaller model."
        )
        return False
    return True


def _start(choice: Choice) -> bool:
    """Start the training; return False after saying why it can't start."""
    try:
        with st.spinner("Getting ready …"):
            plan = plan_of(choice)
            decode = plan.objective.tokenizer.decode
            source = f"{decode(plan.probe_source)} → " if plan.probe_source else ""
            begun = source + decode(plan.sample_prompt)
            settings = f"**{plain(choice.title)}**  \n{_settings(choice)}"
            training.start(plan, references(plan), source + decode(plan.probe_tokens), begun, settings)
            change(snapshot=None)
    except (CorpusError, ValueError) as error:
        st.error(plain(str(error)))
        return False
    return True


def in_words(seconds: float) -> str:
    """An estimated duration, rounded."""
    if seconds < 57.5:
        return f"{max(5 * round(seconds / 5), 5)} seconds"
    minutes = round(seconds / 60)
    return f"{minutes} minute{'' if minutes == 1 else 's'}"


def range_in_words(least: float, most: float) -> str:
    """A range of durations, rounded alike."""
    low, high = in_words(least), in_words(most)
    if low == high:
        return f"up to {high}"
    number, unit = low.split()
    return f"{number} to {high}" if unit.rstrip("s") == high.split()[1].rstrip("s") else f"{low} to {high}"


def _subject(kind: str) -> tuple[str | None, Corpus | None]:
    """The task or text, and its corpus if that is here; (None, None) until an own text is given."""
    if kind == "task":
        task = widgets.selectbox("Task", TASKS, "task", lambda name: TASKS[name].title, label_visibility="collapsed")
        st.caption(TASKS[task].summary)
        return task, None
    if kind == "own":
        corpus = _own_text()
        return (corpus.source.name, corpus) if corpus else (None, None)
    if page_state().corpus is None:  # the last one ships; a link then opens the same one elsewhere
        change(corpus=next(name for name in SOURCES if is_at_hand(name)))
    name = widgets.selectbox("Text", SOURCES, "corpus", lambda name: SOURCES[name].title, label_visibility="collapsed")
    if not is_at_hand(name):
        st.caption("It will be downloaded and checked when training starts.")
        return name, None
    corpus = _corpus(name)
    st.caption(
        f"{len(corpus.text):,} characters, {corpus.source.language}. "
        f"The last {1 - corpus.source.train_fraction:.0%} are held out for validation."
    )
    return name, corpus


def _own_text() -> Corpus | None:
    uploaded = st.file_uploader(
        "A text file, UTF-8, 1 kB to 5 MB",
        type=None,
        key="text_file",
        max_upload_size=5,
        on_change=to_its_end,
        args=(_take_upload,),
    )
    record = session_record()
    name, content = record.uploaded_text or ("", b"")
    if name and uploaded is None:  # the page was left or reloaded, which empties the box
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.caption(f"{plain(name)}, which you uploaded earlier, is used.", width="content")
            widgets.button("Remove it", _remove_upload, key="remove_text", icon="close")
    binding = Binding("own_text", value=record.own_text, take=lambda text: setattr(session_record(), "own_text", text))
    pasted = widgets.text_area("Or paste a text", binding, height=100)
    if pasted.strip():
        name, content = "Your text", pasted
    if not name:
        st.info(
            f"Upload a file or paste a text of at least {SHORTEST_TEXT:,} bytes, about half a page: a book "
            "chapter, song lyrics, code."
        )
        return None
    corpus = _checked_text(content, name)
    st.caption(f"{plain(name)}: {len(corpus.text):,} characters, {len(set(corpus.text))} different ones.")
    return corpus


def _take_upload() -> None:
    """Callback of an upload or a removal. Leaving the page empties the box, too, and keeps the file."""
    uploaded = st.session_state["text_file"]
    former = st.session_state.get("text_file_id", "")
    if has_lapsed(former) and getattr(uploaded, "file_id", former) == former:  # Streamlit has only its id left
        return
    st.session_state["text_file_id"] = uploaded.file_id if uploaded else ""
    session_record().uploaded_text = (uploaded.name[:LONGEST_NAME], uploaded.getvalue()) if uploaded else None


def _remove_upload() -> None:
    session_record().uploaded_text = None


def _shaped(shape: str, learn: str, corpus: Corpus | None) -> tuple[Choice, str]:
    """The chosen architecture, and a sentence on it, or "". Raises: ValueError for an impossible one."""
    preset = _quick(learn)
    if shape == "rung":
        preset = PRESETS[widgets.selectbox("Rung", RUNG_TITLES, "rung", RUNG_TITLES.__getitem__)]
    fields, recipe, batch = dict(preset.shape), preset.training, preset.batch
    if shape == "dials":
        fields, recipe, batch = _dials(preset, learn)
    decided: dict = {"vocab_size": len(set(corpus.text)) if corpus else UNKNOWN_VOCABULARY}
    if learn in TASKS:
        decided = TaskObjective(TASKS[learn], 1, 0).shape
    config = ModelConfig(**fields | decided)
    if corpus and len(corpus.split()[1]) <= config.context_length:
        raise ValueError(
            f"The text is too short for a context of {config.context_length}: the part held out has only "
            f"{len(corpus.split()[1])} characters. Choose a smaller context, or more text."
        )
    summary = "" if shape == "dials" else f"{_first_sentence(preset.summary)}. "
    return Choice(learn, corpus, config, recipe, batch), summary


def _settings(choice: Choice) -> str:
    """The architecture and the training, in words."""
    steps = f"{choice.training.steps:,} steps, each on {choice.batch} {'examples' if choice.is_task else 'excerpts'}"
    return f"{architecture(choice.config).capitalize()}, {steps}."


def _first_sentence(text: str) -> str:
    """The first sentence, without its full stop; *et al.* ends none."""
    return re.split(r"\.(?: (?=[A-Z])|$)", text, maxsplit=1)[0]


def _dials(preset: Preset, learn: str) -> tuple[dict, TrainingConfig, int]:
    left, right = st.columns(2)
    with left:
        widgets.slider("Layers", 1, 6, "n_layers")
        widgets.select_slider("Width (d_model)", WIDTHS, "d_model")
        widgets.selectbox("Positions", ["sinusoidal", "learned", "rotary", "none"], "positions")
    with right:
        widgets.select_slider("Heads", HEADS, "n_heads")
        widgets.slider("Steps", 50, 3000, "steps", step=50)
        widgets.selectbox("Norm", ["pre", "post"], "norm", "{}-norm".format)
    if learn not in TASKS:
        widgets.select_slider("Context", CONTEXTS, "context")
    current = page_state()
    context = TASKS[learn].longest if learn in TASKS else current.context
    batch = preset.batch if learn in TASKS else min(max(1024 // context, 8), 64)
    fields = {name: getattr(current, name) for name in ("n_layers", "n_heads", "d_model", "positions", "norm")}
    fields |= {"context_length": context, "scale_embeddings": current.positions == "sinusoidal"}
    rate = 2e-2 * math.sqrt(64 / max(current.d_model, 64))  # wider models need a smaller one
    training_config = TrainingConfig(
        steps=current.steps,
        learning_rate=rate,
        warmup_steps=min(20, current.steps // 5),
        optimizer="muon",
        momentum=0.9,
        weight_decay=0.01,
        seed=1,
    )
    return fields, training_config, batch


def _quick(learn: str) -> Preset:
    """The preset for a task or a text."""
    return next(preset for preset in QUICK.values() if learn in (preset.task, preset.corpus))


def _checked_text(content: bytes | str, name: str) -> Corpus:
    raw = content.encode(errors="replace") if isinstance(content, str) else content
    key = hashlib.sha256(raw).hexdigest(), name
    stored = st.session_state.get("own_corpus")
    if stored is None or stored[0] != key:
        st.session_state["own_corpus"] = stored = (key, text_corpus(content, name))
    return stored[1]
