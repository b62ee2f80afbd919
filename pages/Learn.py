"""Learn: lessons that ask for a prediction before they show what the models really do."""

from pages.ui.components.top import begin_at_top
from pages.ui.frame.page import session
from pages.ui.views.learn import course, entering, glossary, step, teacher

current = session()
begin_at_top(f"{current.visitor.lesson} {current.visitor.lesson_step}")
if current.visitor.lesson == entering.TEACHERS:
    teacher.show()
elif current.visitor.lesson == entering.GLOSSARY:
    glossary.show()
elif entering.entered() is None:
    course.show(current)
else:
    step.show_view(current)
