// Asks for a run of the part of the teacher's page that it stands in, where what is drawn is of another version of the room.
import { pageChange } from "../../host/page_change.js";
import { Follower, TICK, follow, isFollowed, roomVersion } from "./room_stream.js";

/** Milliseconds after which a run is asked for once more, if none has been drawn by then. */
const AGAIN = 3_000;
/** Milliseconds after which a version that was just drawn is compared: the stream may be a moment behind. */
const SETTLES = 250;

class TeachersPart extends Follower {
  show(data, trigger) {
    this.drawn = data.version;
    this.ticks = data.left > 0;
    this.trigger = trigger;
    this.isAsked = false;
    this.after(this.ticks ? TICK : SETTLES);
  }

  get isBehind() {
    return roomVersion() !== null && roomVersion() !== this.drawn;
  }

  get saysProblems() {
    return Boolean(this.drawn);
  }

  /** The room is heard of: ask for a run at once, unless one is on its way. */
  hear() {
    if (this.isBehind && !this.isAsked) this.ask();
  }

  ask() {
    this.isAsked = true;
    if (this.parent.isConnected && !pageChange().isUnderWay(performance.now())) this.trigger("changed", true);
    this.after(AGAIN);
  }

  after(milliseconds) {
    clearTimeout(this.later);
    this.later = setTimeout(() => isFollowed(this.parent) && (this.ticks || this.isBehind) && this.ask(), milliseconds);
  }
}

export function mountRoomFollower({ data, parentElement, setTriggerValue }) {
  follow(data.membership, parentElement, () => new TeachersPart(parentElement)).show(data, setTriggerValue);
}
