"""Learn: lessons that ask for a prediction before they show what the models really do."""

from pages.ui.shell.sidebar import finish, open_page
from pages.ui.views.learn import course, entering, glossary, room, step, teacher

session = open_page("Learn", decide=entering.opening, first=step.show)
if session.visitor.lesson == entering.TEACHERS:
    teacher.show()
elif session.visitor.lesson == entering.GLOSSARY:
    glossary.show()
elif entering.entered() is None:
    course.show(session)
else:
    step.show_view(session)
finish()
room.depart()
