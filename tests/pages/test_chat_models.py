"""Tests chat models: their template is data, is tokenized, and can be turned off."""

import dataclasses
import datetime
import json

import pytest

from pages.ui.lessons.measure_setup import Setup
from pages.ui.models import library
from tests.app_driver import given, link_of, prompt, start, use, writing
from tests.tiny_models import CHAT_TOKENS, byte_tokenizer, save_chatty
from transformer import ModelCard, load_pretrained
from transformer.checkpoints.exporting import export_pretrained
from transformer.data import chat, limited_process
from transformer.data.chat import Chat, ChatTemplateError, chat_of
from transformer.data.tokenizers import HALF

TURN = "'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'"
ASKED = "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
PLAIN = "{% for message in messages %}{{" + TURN + "}}{% endfor %}" + ASKED
FIRST = "{% if loop.first %}{{ '<|im_start|>system\\nYou help.<|im_end|>\\n' }}{% endif %}"
USER, ANSWER = "<|im_start|>user\n", "<|im_end|>\n<|im_start|>assistant\n"


@pytest.mark.parametrize(
    ("template", "named", "expected"),
    [
        (PLAIN, {}, Chat(USER, ANSWER)),
        (
            PLAIN.replace("{{" + TURN, FIRST + "{{" + TURN),
            {},
            Chat(f"<|im_start|>system\nYou help.<|im_end|>\n{USER}", ANSWER),
        ),
        (PLAIN.replace("message['content']", "message['content'] | trim"), {}, Chat(USER, ANSWER, strip=True)),
        ("{{ bos_token }}" + PLAIN, {"bos_token": "<|im_end|>"}, Chat("<|im_end|>" + USER, ANSWER)),
    ],
)
def test_what_a_template_puts_around_the_words_becomes_data(template, named, expected):
    assert chat_of(template, byte_tokenizer(), named) == expected


DATED = "{{{{ 'Today: ' + {} + '; ' }}}}" + PLAIN.replace("{", "{{").replace("}", "}}")
DAY = datetime.datetime(2031, 12, 5)
FORMS = ["%d %b %Y", "%A, %B %d, 100%%"]


class SomeDay(datetime.datetime):
    """A clock that stands still."""

    at = DAY

    @classmethod
    def now(cls, tz=None):
        return cls.at


@pytest.mark.parametrize("form", FORMS)
def test_a_date_is_that_of_the_day_on_which_a_question_is_read(form, monkeypatch, tmp_path):
    """In Python, in a link's tokens, and for transformers, once it is exported."""
    tokenizer = byte_tokenizer()
    found = chat_of(DATED.format(f"strftime_now('{form}')"), tokenizer)
    assert found.dates == (form,) and DAY.strftime(form) not in found.before
    monkeypatch.setattr(chat, "datetime", SomeDay)
    for day in (DAY, DAY.replace(month=1)):
        monkeypatch.setattr(SomeDay, "at", day)
        asked = f"Today: {day.strftime(form)}; {USER}Hi{ANSWER}"
        assert found.text("Hi") == asked == tokenizer.with_names().decode(found.tokens(tokenizer, "Hi"))
    parts = {"before": found.before, "after": found.after, "dates": [form]}
    chatty = save_chatty(tmp_path)
    export_pretrained(tmp_path / "out", dataclasses.replace(chatty, card=dataclasses.replace(chatty.card, chat=parts)))
    assert load_pretrained(tmp_path / "out").card.chat == parts
    theirs = json.loads((tmp_path / "out/tokenizer_config.json").read_text(encoding="utf-8"))["chat_template"]
    assert chat.rendered(theirs, ["Hi"], {}, DAY) == [f"Today: {DAY.strftime(form)}; {USER}Hi{ANSWER}"]


LOOP = "{% for each in range(99999) %}"


@pytest.mark.parametrize(
    ("template", "words"),
    [
        (None, "no text"),
        ("", "say a person's words once"),
        (TURN, "words once"),
        ("{{ messages }}", "changes what stands around the words"),
        ("{{ messages[0].content.upper() }}", "words once"),
        ("{% if 'x' in messages[0].content %}!{% endif %}{{ messages[0].content }}", "changes what stands around"),
        (PLAIN * 200, "more than 20,000 characters"),
        (LOOP + "some words{% endfor %}", "more than 20,000 characters"),
        ("{{ raise_exception('not for you') }}", "not for you"),
        ("{{ cycler.__init__.__globals__ }}", "SecurityError"),
        ("{{ messages.append(1) }}", "SecurityError"),
        ("{% if", "TemplateSyntaxError"),
        *((DATED.format(f"strftime_now('{form}')"), "the time of the day") for form in ("%H:%M", "%c", "%3000d")),
        (DATED.format("strftime_now('%Y')[2:]"), "depends on the date"),
        (DATED.format("strftime_now('%Y') | int | string"), "depends on the date"),
        ("{% if strftime_now('%Y') > '2020' %}!{% endif %}{{ messages[0].content }}", "depends on the date"),
        ("{{ [1, 2] | random }}{{ messages[0].content }}", "No filter named 'random'"),
        ("{{ lipsum() }}{{ messages[0].content }}", "'lipsum' is undefined"),
        ("{{ 'a' * 10 ** 9 }}", "too much memory"),
        (LOOP + LOOP + "{% endfor %}{% endfor %}", "too much time|longer than"),
    ],
)
def test_a_template_that_does_anything_else_is_ended_and_refused(template, words, monkeypatch):
    if template and template.startswith(LOOP + LOOP):
        monkeypatch.setattr(chat, "SECONDS", 4)
    with pytest.raises(ChatTemplateError, match=words):
        chat_of(template, byte_tokenizer())


def test_a_template_sees_nothing_of_the_server(monkeypatch):
    """What escaped from the sandbox would find an empty folder and no secrets."""
    monkeypatch.setenv("HEADSUP_SECRET", "told")
    seen, run = {}, limited_process.subprocess.run

    def spy(command, **options):
        seen.update(options)
        return run(command, **options)

    monkeypatch.setattr(limited_process.subprocess, "run", spy)
    chat_of(PLAIN, byte_tokenizer())
    assert "HEADSUP_SECRET" not in seen["env"] and not library.FOLDER.is_relative_to(seen["cwd"])


def test_names_of_special_tokens_are_tokens_in_the_template_alone():
    tokenizer = byte_tokenizer()
    begin, end = map(tokenizer.special_id, CHAT_TOKENS)
    found = Chat(USER, ANSWER).tokens(tokenizer, "a <|im_end|> b")
    assert (found.count(begin), found.count(end)) == (2, 1) and found[0] == begin
    assert tokenizer.labels(found)[1:6] == ["u", "s", "e", "r", "↵"]
    assert tokenizer.decode(found).startswith("user\na <|im_end|> b")


@pytest.mark.parametrize("where", ["tokenizer_config.json", "chat_template.jinja", "by name", "unknown"])
def test_a_folder_s_template_goes_into_the_card(where, tmp_path):
    export_pretrained(tmp_path / "theirs", save_chatty(tmp_path))
    if where == "chat_template.jinja":
        (tmp_path / "theirs" / where).write_text(PLAIN)
    else:
        told = {
            "by name": [{"name": "tools", "template": ""}, {"name": "default", "template": PLAIN}],
            "unknown": "{{ messages }}",
        }.get(where, PLAIN)
        (tmp_path / "theirs" / "tokenizer_config.json").write_text(json.dumps({"chat_template": told}))
    card = load_pretrained(tmp_path / "theirs").card
    if where == "unknown":
        assert card.chat is None and "reads plain text" in card.summary
    else:
        assert card.chat == {"before": USER, "after": ANSWER} and "What is" in card.examples[0]


def test_a_card_s_chat_is_two_texts():
    strip = {"before": "", "after": "", "strip": 1}
    dates = [{"before": "", "after": "", "dates": [form]} for form in ("%9999d", "%H", "x" * 61, "%")]
    for wrong in ([], {"before": ""}, {"before": 1, "after": ""}, {"before": "a" * 20_001, "after": ""}, strip, *dates):
        with pytest.raises(ValueError, match=r"chat|words"):
            ModelCard.from_dict({"title": "x", "chat": wrong})
    assert ModelCard.from_dict({"title": "x", "chat": {"before": "a", "after": "b"}}).chat["after"] == "b"


@pytest.mark.parametrize("reads", [None, "chat", "plain"])
def test_the_app_and_its_lessons_send_the_template_unless_plain_text_is_chosen(reads, tmp_path, monkeypatch):
    use(monkeypatch, tmp_path)
    tokenizer = save_chatty(tmp_path).tokenizer
    chosen = {"reads": reads} if reads else {}
    at = start(model="chatty", **chosen)
    sent = given(at)["prompt"]
    assert link_of(at).get("reads", "chat") == (reads or "chat")
    if reads == "plain":
        assert sent == tokenizer.encode(prompt(at))
    else:
        assert sent == Chat(USER, ANSWER).tokens(tokenizer, prompt(at))
        assert writing(at).metadata["kinds"][str(sent[0])][1].strip() == "<|im_start|>"
    link = {"model": "chatty", "prompt": prompt(at), **chosen}
    setup = Setup.of(link, {})
    assert list(setup.tokens) == sent and Setup.of(link, {"prompt": "you"}).reads == setup.reads


def test_half_a_character_waits_for_the_other_half():
    tokenizer = byte_tokenizer()
    text = "▁ é🙂x"
    ids = tokenizer.encode(text)
    pieces = tokenizer.pieces(ids)
    assert "".join(pieces) == text == tokenizer.decode(ids)
    assert tokenizer.labels(ids)[0] == "⟨E2⟩" and pieces[:2] == ["", ""] and not any(HALF in each for each in pieces)
    assert HALF in "".join(tokenizer.pieces(ids[:1]))  # nothing follows that it could wait for
    broken = [*ids[:1], *tokenizer.encode("abc")]
    assert "".join(tokenizer.pieces(broken)).endswith("abc")


def test_a_text_begins_once_however_many_parts_it_is_encoded_in(tmp_path, monkeypatch):
    tokenizer = save_chatty(tmp_path, begins=True).tokenizer
    use(monkeypatch, tmp_path)
    (begin,) = tokenizer.encode("")
    assert Chat(USER, ANSWER).tokens(tokenizer, "hi") == Chat(USER, ANSWER).tokens(byte_tokenizer(), "hi")
    for text, expected in (("", "hi"), (" x", "hi x")):
        tokens = Setup(model="chatty", prompt="hi", text=text, reads="plain").tokens
        assert list(tokens) == [begin, *byte_tokenizer().encode(expected)]
