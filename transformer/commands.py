"""The commands of the command line."""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

from .checkpoints.exporting import export_pretrained
from .checkpoints.folder import CARD, Checkpoint, CheckpointError, list_checkpoints, load_checkpoint, save_checkpoint
from .checkpoints.importing import import_pretrained
from .checkpoints.model_card import ModelCard
from .checkpoints.pretrained import is_gguf, load_pretrained
from .data.corpora import CorpusError, load_corpus
from .data.disk_errors import disk_problem
from .data.tasks import TASKS, Induction, Stories, Task
from .data.tokenizers import HALF
from .frontend.site import write_site
from .inference.generation import generate
from .inference.sampling import Sampling
from .output_pipe import CLOSED
from .training.evaluation import HELD_OUT, evaluate_loss, exact_matches, measure_induction, measure_reading
from .training.execution import Execution, check_alone, may_be_restarted, process_group
from .training.loop import NotFiniteError, StepReport
from .training.objectives import Objective, TaskObjective, TextObjective
from .training.plan import plan_of
from .training.presets import PRESETS, RUNGS, Preset
from .training.text_baselines import bits_per_byte
from .training.trainer import Trainer
from .training.word_relations import RELATIONS, measure_relations

SHIPPED = Path(__file__).parent.parent / "checkpoints"


def _train(options: argparse.Namespace) -> None:
    if options.preset not in PRESETS:
        raise ValueError(f"There is no preset {options.preset!r}; there are {', '.join(PRESETS)}.")
    preset = PRESETS[options.preset]
    _set_threads(options.threads)
    card = _trained(preset, options, options.work_dir or Path("runs") / preset.name, on_step=_report)
    if card:
        exact = "" if card.accuracy is None else f", {card.accuracy:.3%} of held-out examples exactly right"
        print(f"Saved {options.checkpoints / preset.name}: validation loss {card.validation_loss} nats{exact}.")


def _trained(preset: Preset, options: argparse.Namespace, folder: Path, **watch: Any) -> ModelCard | None:
    """Train a preset and save it among the checkpoints; returns its card, or None if another process has saved it.

    folder: takes the state of the run. watch: what `Trainer.go` calls.
    """
    _check_writable(options.checkpoints)
    folder.mkdir(parents=True, exist_ok=True)
    state = folder / "state.safetensors"
    is_resumed = options.resume or may_be_restarted()
    if state.exists() and not is_resumed:
        raise ValueError(
            f"{state} is the state of another run: go on from it with --resume, or delete it to begin anew."
        )
    begun = load_checkpoint(options.checkpoints / preset.begins_with).model if preset.begins_with else None
    plan = plan_of(preset, _objective(preset, options.corpus_dir), dict(begun.named_parameters()) if begun else None)
    with process_group(Execution(device=options.device, dtype=options.dtype, is_compiled=options.compile)) as execution:
        trainer = Trainer(plan, state=state, execution=execution)
        if is_resumed and state.is_file():
            trainer.resume()
        execution.check_agreed(trainer.run.step)
        trainer.go(lambda: execution.is_main, **watch)
        if not execution.is_main:
            return None
        checkpoint = trainer.checkpoint()
        card, objective = checkpoint.card, plan.objective
        if isinstance(objective, TextObjective) and card.validation_loss is not None:
            bits = bits_per_byte(objective.corpus, objective.tokenizer, card.validation_loss)
            card.training["bits_per_byte"] = {name: round(figure, 4) for name, figure in bits.items()}
        save_checkpoint(options.checkpoints / preset.name, checkpoint, dtype=torch.float16)
        return checkpoint.card


def _check_writable(folder: Path) -> None:
    """Raise ValueError for a folder that takes no files, before a training rather than after it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ValueError(
            f"{folder} can't be written to ({error.strerror}); name another folder with --checkpoints."
        ) from error


def _check_count(option: str, number: int | None) -> None:
    if number is not None and number < 1:
        raise ValueError(f"{option} is {number}; it must be 1 or more.")


def _set_threads(threads: int | None) -> None:
    _check_count("--threads", threads)
    if threads:
        torch.set_num_threads(threads)


def _objective(preset: Preset, corpus_folder: Path | None) -> Objective:
    seed = preset.training.seed
    if preset.task:
        return TaskObjective(TASKS[preset.task], preset.batch, seed)
    corpus, context = load_corpus(preset.corpus, corpus_folder), preset.shape["context_length"]
    return TextObjective(corpus, context, preset.batch, seed, vocab_size=preset.vocab_size)


def _report(step: StepReport, validation_loss: float | None) -> None:
    if validation_loss is not None:
        print(
            f"step {step.step:6}  training loss {step.loss:.4f}  validation loss {validation_loss:.4f}  "
            f"{step.tokens_per_second:,.0f} tokens/s",
            flush=True,
        )


def _ladder(options: argparse.Namespace) -> None:
    check_alone("A ladder is trained")
    _set_threads(options.threads)
    print(f"{'rung':24} {'parameters':>10} {'batches':>9} {'validation':>10} {'seconds':>8}")
    for preset in RUNGS[options.which]:
        card = _trained(preset, options, (options.work_dir or Path("runs")) / preset.name)
        assert card  # there is one process
        print(
            f"{preset.name:24} {card.parameters:10,} {card.training['last_batches_loss']:9.4f} "
            f"{card.validation_loss:10.4f} {card.training['seconds']:8.0f}",
            flush=True,
        )


def _evaluate(options: argparse.Namespace) -> None:
    checkpoint = load_checkpoint(options.checkpoints / options.name)
    if task := TASKS.get(checkpoint.card.task):
        print(f"{options.name}: {_task_in_words(checkpoint, task)}")
        return
    if not (name := checkpoint.card.corpus.get("name")):
        raise ValueError(
            f"Its card names no text that {options.name} was trained on, so there is none to measure it on."
        )
    corpus = load_corpus(name, options.corpus_dir)
    _, validation = corpus.split()
    tokens = checkpoint.tokenizer.encode(validation)
    loss = evaluate_loss(checkpoint.model, tokens)
    bits = {name: f"{figure:.4f}" for name, figure in bits_per_byte(corpus, checkpoint.tokenizer, loss).items()}
    each = "character" if len(tokens) == len(validation) else "token"
    print(
        f"{options.name}: {loss:.4f} nats per {each}, {bits['model']} bits per byte, over {len(validation):,} "
        f"characters of {corpus.source.title}, in windows of {checkpoint.model.config.context_length}. The best bigram "
        f"table takes {bits['bigram']} bits per byte; after the training part, xz {bits['xz']} and gzip {bits['gzip']}."
    )
    if each == "token" and corpus.source.language == "English":
        for found in measure_relations(checkpoint.model, checkpoint.tokenizer, validation):
            print(
                f"{RELATIONS[found.relation]}: block {found.layer}, head {found.head} with {found.weight:.3f} of its "
                f"attention; evenly spread, it would be {found.even:.3f} ({found.tokens:,} tokens)"
            )
            print(*(f"    {example}" for example in found.examples), sep="\n")


def _task_in_words(checkpoint: Checkpoint, task: Task) -> str:
    if isinstance(task, Induction):
        measured = measure_induction(checkpoint.model, task)
        return (
            f"on {measured.sequences} random sequences of {measured.period} characters, each given twice: "
            f"{measured.first_loss:.4f} nats per character the first time, {measured.second_loss:.4f} the second; "
            f"best induction score {measured.best_score:.3f} (block {measured.layer}, head {measured.head})"
        )
    examples = task.sample(HELD_OUT)
    accuracy = exact_matches(checkpoint.model, task, examples)
    words = f"{accuracy:.3%} of {len(examples):,} held-out examples exactly right, written greedily"
    if isinstance(task, Stories):
        looked = measure_reading(checkpoint.model, task)
        words += (
            f"; over {looked.questions:,} questions, block {looked.layer}, head {looked.head} gives the word "
            f"that answers {looked.weight:.3f} of its attention"
        )
    return words


def _opened(options: argparse.Namespace) -> Checkpoint:
    """A checkpoint by its name, or by a path; or somebody else's model by the path of its folder or `.gguf` file."""
    path = options.checkpoints / options.name
    if not path.exists() and Path(options.name).exists():
        path = Path(options.name)
    is_theirs = is_gguf(path) or ((path / "config.json").is_file() and not (path / CARD).is_file())
    return load_pretrained(path) if is_theirs else load_checkpoint(path)


def _generate(options: argparse.Namespace) -> None:
    _check_count("--tokens", options.tokens)
    checkpoint = _opened(options)
    card, tokenizer = checkpoint.card, checkpoint.tokenizer.with_new_words([options.prompt])
    sampling = Sampling(options.temperature, options.top_k, options.top_p, options.seed)
    prompt = tokenizer.encode(options.prompt, split_special_tokens=False if options.special_tokens else None)
    source, begun = None, options.prompt
    if checkpoint.model.config.architecture == "encoder-decoder":
        prompt, source, begun = [*card.start_tokens], prompt, ""
    steps = generate(
        checkpoint.model,
        prompt,
        source=source,
        max_new_tokens=options.tokens,
        sampling=sampling,
        stop_tokens=card.stop_tokens,
        names_filter=(),
    )
    print(begun, end="", flush=True)
    printed, written = tokenizer.decode(prompt), list(prompt)
    for step in steps:
        written.append(step.token_id)
        text = tokenizer.decode(written)
        if not text.endswith(HALF):  # the rest of a character comes with the next tokens
            print(text[len(printed) :], end="", flush=True)
            printed = text
    print(tokenizer.decode(written)[len(printed) :])


def _import(options: argparse.Namespace) -> None:
    if options.name is not None and not options.name.strip():
        raise ValueError("--name is empty; leave it out to call the checkpoint as the source.")
    name, checkpoint = import_pretrained(options.source, options.checkpoints, options.name)
    config = checkpoint.model.config
    is_pair = config.architecture == "encoder-decoder"
    layers = f"{config.n_encoder_layers} + {config.n_layers}" if is_pair else config.n_layers
    print(
        f"Saved {options.checkpoints / name}: {checkpoint.card.parameters:,} parameters, {layers} layers, "
        f"{config.n_heads} heads, {config.vocab_size:,} tokens."
    )


def _export(options: argparse.Namespace) -> None:
    if os.path.exists(options.folder):  # False for names that no system takes
        raise ValueError(f"{options.folder} exists already; name a folder that doesn't.")
    family = export_pretrained(options.folder, _opened(options))
    print(f"Wrote {options.folder}, which {family.architecture} opens.")


def _serve(options: argparse.Namespace) -> None:
    try:
        from .api.model_library import Library  # here, for no other command needs a server
        from .api.serve import serve
        from .api.settings import check_folder
    except ModuleNotFoundError as error:
        raise ValueError(f"There is no {error.name} here, which serving needs: pip install '.[api]'.") from None
    check_folder("--checkpoints", str(options.checkpoints))
    library = Library() if options.checkpoints == SHIPPED else Library(options.checkpoints)
    serve(library, options.host, options.port)


def _site(options: argparse.Namespace) -> None:
    shipped = options.checkpoints == SHIPPED
    if shipped and importlib.util.find_spec("streamlit") and (SHIPPED.parent / "pages").is_dir():
        command = [sys.executable, "-m", "pages.ui", "site", str(options.folder.resolve())]  # which knows the lessons
        status = subprocess.run(command, cwd=SHIPPED.parent).returncode
        if status == CLOSED:
            raise BrokenPipeError
        if status:
            raise ValueError("The site was not written.")
        return
    names = [entry.name for entry in list_checkpoints(options.checkpoints) if entry.problem is None]
    paths = [options.checkpoints / name for name in names]
    size = write_site(options.folder, {path.name: load_checkpoint(path) for path in paths})
    print(f"Wrote {options.folder}: {len(paths)} models, {size / 1e6:.1f} MB; without the course, which the app has.")


def _list(options: argparse.Namespace) -> None:
    for entry in list_checkpoints(options.checkpoints):
        if entry.problem is not None:
            print(f"{entry.name:22} can't be used: {entry.problem}")
        else:
            loss = f"validation loss {entry.card.validation_loss}" if entry.card.validation_loss is not None else ""
            print(f"{entry.name:22} {entry.card.parameters:9,} parameters  {loss}  {entry.card.summary}")
    print("Presets that can be trained:", ", ".join(PRESETS))


COMMANDS = {
    "train": _train,
    "ladder": _ladder,
    "evaluate": _evaluate,
    "generate": _generate,
    "import": _import,
    "export": _export,
    "serve": _serve,
    "site": _site,
    "list": _list,
}
ERRORS = (CheckpointError, CorpusError, NotFiniteError, OSError, ValueError)
"""Errors that are shown as a sentence, without a traceback."""


def in_words(error: Exception) -> str:
    """What is said of one of them."""
    if isinstance(error, OSError) and (full := disk_problem(error)):
        return f"{error.filename or 'A file'} can't be written: {full}."
    return str(error)
