// Runs the page Learn of a static site, and a file of one lesson.

import { startLessons } from "../lessons/lesson_page.js";

startLessons();
