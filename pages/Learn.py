"""Runs the page Learn: lessons ask for a prediction, then show what the models do."""

from pages.ui.components.top import begin_at_top
from pages.ui.frame.page import session
from pages.ui.views.learn import glossary_page, lesson_list, opened_step, step, teachers_page

current = session()
begin_at_top(f"{current.visitor.lesson} {current.visitor.lesson_step}")
if current.visitor.lesson == opened_step.TEACHERS:
    teachers_page.show()
elif current.visitor.lesson == opened_step.GLOSSARY:
    glossary_page.show()
elif opened_step.opened_step() is None:
    lesson_list.show(current)
else:
    step.show_view(current)
