"""Runs the page Learn: lessons ask for a prediction, then show what the models do."""

from pages.ui.components.scroll_to_top import scroll_to_top
from pages.ui.frame.page import session
from pages.ui.views.learn import glossary_page, lesson_list, opened_step, room_membership, step, teachers_page

current = session()
room = room_membership.membership()
scroll_to_top(f"{current.state.lesson} {current.state.lesson_step} {room and room.code}")
if current.state.lesson == opened_step.TEACHERS:
    teachers_page.show()
elif current.state.lesson == opened_step.GLOSSARY:
    glossary_page.show()
elif opened_step.opened_step() is None:
    lesson_list.show(current)
else:
    step.show_view(current)
