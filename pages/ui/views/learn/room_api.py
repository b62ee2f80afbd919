"""The API of rooms, mounted at /api/rooms: open, join and leave one, see where it is, vote, follow its events.

A member is known by a key, in the header `HeadsUp-Room`: in an address, proxies would log it. Errors are those of the
engine's API: a status and one sentence. Who isn't in a room isn't told whether there is one.
"""

import functools
import secrets
from collections.abc import Callable
from hashlib import blake2b
from typing import Annotated, Any

from fastapi import FastAPI, Header, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field, Strict
from starlette.exceptions import HTTPException

from pages.ui.lessons import lesson_files
from pages.ui.lessons.lesson import Lesson
from pages.ui.lessons.own_lessons import is_own, name_of, own_lesson
from pages.ui.lessons.room import (
    MemberVotes,
    NoRoomError,
    Phase,
    RoomError,
    RoomsAwayError,
    TooOftenError,
    answer_of,
    as_text,
)
from pages.ui.lessons.room_attempts import Attempts
from pages.ui.lessons.room_events import HEADER, RoomEvents
from pages.ui.lessons.rooms import KEY, Rooms, tidy
from pages.ui.session.lesson_answers import StepId
from pages.ui.session.session_store import without_session
from pages.ui.shared_redis import buckets
from pages.ui.views.learn.document import step_document, without_answer
from transformer.api.errors import ApiError, on_api_error, on_exception, on_http_error, on_invalid
from transformer.api.limits import COOKIE, Limits, counted_address, visitor_of
from transformer.api.request_counts import Counts

NOT_HERE = "You are not in this room, or it has ended."
Key = Annotated[str, Header(alias=HEADER, max_length=64)]
Name = Annotated[str, Field(max_length=80)]
Number = Annotated[int, Field(ge=0, le=1_000)]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Opening(_Body):
    """Where a new room begins; without a lesson, its students navigate freely."""

    lesson: Name = ""
    step: Number = 0


class Joining(_Body):
    """browser: 32 hexadecimal digits that all tabs of a browser have in common; without them, its cookie stands."""

    browser: Annotated[str, Field(max_length=64)] = ""


class Vote(_Body):
    """An answer to the question of a step. phase: the one in which it was given; None for the present one."""

    lesson: Name
    step: Number
    answer: Annotated[int, Strict()] | Annotated[float, Strict()] | list[Annotated[int, Strict()]]
    phase: Phase | None = None


@functools.cache
def attempts() -> Attempts:
    """The wrong codes that were tried, and the joins, on this server or on all that share its Redis."""
    return Attempts(buckets())


def app_of(rooms: Callable[[], Rooms], events: RoomEvents, counts: Counts | None = None) -> FastAPI:
    """Make the ASGI application. counts: the counter of requests; None for a new one."""
    app = FastAPI(openapi_url=None)
    app.add_middleware(Limits, counts=counts, lasting=True)
    app.exception_handler(ApiError)(on_api_error)
    app.exception_handler(RoomError)(_on_room_error)
    app.exception_handler(RequestValidationError)(on_invalid)
    app.exception_handler(HTTPException)(on_http_error)
    app.exception_handler(Exception)(on_exception)

    @app.post("/")
    def open_room(where: Opening, request: Request) -> dict[str, str]:
        attempts().join(*who(request), "", rooms().size)
        code, key = rooms().open(StepId(where.lesson, where.step) if where.lesson else None)
        return {"code": code, "key": key}

    @app.post("/{code}/members")
    def join(code: str, joining: Joining, request: Request, key: Key = "") -> dict[str, str]:
        """A member who sends their key takes up their place again."""
        asker = who(request)
        attempts().check(*asker)
        member = key if KEY.fullmatch(key) else member_key(code, joining.browser, asker[0])
        try:
            code, key = rooms().join(code, member, lambda: attempts().join(*asker, tidy(code), rooms().size))
        except NoRoomError as error:
            attempts().add_wrong(*asker)
            raise ApiError(404, str(error)) from None
        return {"code": code, "key": key}

    @app.delete("/{code}/members")
    def leave(code: str, key: Key = "") -> dict[str, str]:
        rooms().leave(tidy(code), key)
        return {}

    @app.get("/{code}")
    def see(code: str, key: Key = "", lesson: Name = "", step: Number = 0) -> JSONResponse:
        """What a member's page shows. lesson, step: the step that it has on screen, if any.

        votes: on the room's step, or, while students navigate freely, on theirs. document: of the room's step, with
        what is right once that is revealed.
        """
        code, on_screen = tidy(code), StepId(lesson, step) if lesson else None
        state = rooms().state(code, key, on_screen)
        step_id = state.step_id or on_screen
        votes = rooms().votes_of(code, key, step_id)[step_id] if step_id else MemberVotes()
        shown = {
            "step": state.step_id and [state.step_id.lesson, state.step_id.step],
            "lesson": state.lesson,
            "phase": votes.phase,
            "teacher_here": state.teacher_here,
            "shown": state.shown,
            "left": None if state.deadline is None else rooms().left(state.deadline),
            "votes": [None if vote is None else answer_of(vote) for vote in (votes.first, votes.second)],
            "document": state.step_id and _document(code, key, state.step_id, votes.phase),
        }
        return JSONResponse(shown, headers={"Cache-Control": "no-store"})

    @app.post("/{code}/votes")
    def vote(code: str, vote: Vote, key: Key = "") -> dict[str, str]:
        code, step_id = tidy(code), StepId(vote.lesson, vote.step)
        rooms().state(code, key)  # whose members alone are told what fits
        opened = _lesson(code, key, step_id)
        question = opened and opened.steps[vote.step].question
        if question is None or not question.fits(vote.answer):
            raise ApiError(400, "There is no question to which this can be an answer.", "answer")
        rooms().vote(code, key, step_id, as_text(vote.answer), vote.phase)
        return {}

    @app.get("/{code}/events")
    async def follow(code: str, key: Key = "") -> Response:
        return await events.follow(tidy(code), key)

    def _lesson(code: str, key: str, step_id: StepId) -> Lesson | None:
        """The lesson of a step that a member's page can open: one of the course, or the room's own."""
        lesson = lesson_files.lesson(step_id.lesson)
        if is_own(step_id.lesson):
            text = rooms().lesson(code, key)
            lesson = own_lesson(text) if name_of(text) == step_id.lesson else None
        return lesson if lesson and step_id.step < len(lesson.steps) else None

    def _document(code: str, key: str, step_id: StepId, phase: Phase) -> dict[str, Any] | None:
        if (lesson := _lesson(code, key, step_id)) is None:
            return None
        with without_session():
            document = step_document(lesson, step_id.step)
        is_told = phase is Phase.REVEALED or not document["question"]
        return document if is_told else without_answer(document)

    return app


def member_key(code: str, browser: str, visitor: str) -> str:
    """The key of a browser as a student of a room: another in each room, so that votes of two rooms can't be told to be
    of the same browser."""
    own = browser if KEY.fullmatch(browser) else visitor
    return blake2b(f"{tidy(code)} {own}".encode(), digest_size=16).hexdigest()


def who(request: Request) -> tuple[str, str | None]:
    """What tells a visitor apart, and the address, as limits count them. Without a cookie, the address alone counts."""
    visitor, _ = visitor_of(request.cookies.get(COOKIE, ""))
    address = request.client.host if request.client else ""
    return visitor or secrets.token_hex(8), counted_address(address, request.headers.getlist("x-forwarded-for"))


def _on_room_error(request: Request, error: Exception) -> Response:
    match error:
        case NoRoomError():
            return ApiError(404, NOT_HERE).response()
        case TooOftenError() | RoomsAwayError():
            status = 429 if isinstance(error, TooOftenError) else 503
            return ApiError(status, str(error), retry_after=1).response()
    return ApiError(409, str(error)).response()
