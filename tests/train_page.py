"""Runs the smallest training on the page Train in tests."""

import json
import time

from tests.app_driver import checked, component, press, said, tell_page, told_of

SHAPE = {"shape": "dials", "n_layers": 1, "n_heads": 1, "d_model": 16}
SMALL = {"learn": "task", "task": "next-vowel", "steps": 50, **SHAPE}
LONG = SMALL | {"steps": 3000, "n_layers": 4}


def captions(at):
    return " ".join(caption.value for caption in at.caption)


def labels(at):
    """Of the buttons that can be pressed."""
    return [button.label for button in at.button if not button.disabled]


def wait_for(at, label, seconds=90):
    """Run the page until it has a button of this label."""
    deadline = time.monotonic() + seconds
    while label not in labels(at):
        assert time.monotonic() < deadline, said(at)
        time.sleep(0.05)
        checked(at.run())
    return at


def train_to_the_end(at):
    return checked(wait_for(press(at, "Train"), "Train another").run())


def record(at):
    return at.session_state["session_record"]


def _upload(at, box, *file):
    """box: how its label begins. file: its name, content and kind."""
    (found,) = [each for each in at.get("file_uploader") if each.label.startswith(box)]
    return checked(found.upload(*file).run())


def upload_model(at, name, content):
    return _upload(at, "Upload a model", name, content, "application/zip")


def upload_text(at, content, name="setup.txt"):
    return _upload(at, "A text file", name, content, "text/plain")


def kept_by_tab(at):
    """What the tab has of its visitor's record."""
    return json.loads(component(at, "headsup_session_token").json)


def reloaded(before, at):
    """A new session of the tab that showed `before`: it hands over what it kept."""
    kept = kept_by_tab(before)["value"]
    assert not kept_by_tab(at)["heard"] and kept_by_tab(at)["value"] != kept
    at = tell_page(at, "headsup_session_token", "found", kept)
    assert kept_by_tab(at)["heard"] and kept_by_tab(at)["value"].split()[0] == kept.split()[0]
    return at


def groups(at):
    """Whose models are listed, of those that don't ship."""
    return {"Yours", "Shared with you"} & {entry["group"] for entry in told_of(at)["catalogue"]}
