// What lessons and rooms mount: one file, as all of it needs the questions.
import { mountLessonList } from "./lesson_list/lesson_list.js";
import { mountLessonStep } from "./lesson_step/lesson_step.js";
import { mountRoom } from "./room/room.js";

export const lessonMounts = { lesson_list: mountLessonList, lesson_step: mountLessonStep, room: mountRoom };
