// Times as people say them: how long ago, with the whole time as title. The server has written them in UTC.

import { element } from "./elements.js";

const PAUSE = 10_000; // milliseconds between two looks at the clock
const UNITS = [
  ["second", 60],
  ["minute", 60],
  ["hour", 24],
  ["day", 7],
];
const relative = new Intl.RelativeTimeFormat("en", { style: "short" });
const whole = new Intl.DateTimeFormat("en", { dateStyle: "medium", timeStyle: "long" });
const short = new Intl.DateTimeFormat("en", { dateStyle: "medium", timeStyle: "short" });

/** How long ago a Date was; after a week, the date itself. */
export function ago(time, now = new Date()) {
  let count = (now - time) / 1000;
  if (count < 5) return "just now"; // clocks of servers may be ahead
  for (const [unit, most] of UNITS) {
    if (count < most) return relative.format(-Math.floor(count), unit);
    count /= most;
  }
  return short.format(time);
}

/** An element for a time. */
export function timeElement(time) {
  const made = element("time");
  showTime(made, time);
  return made;
}

function showTime(place, time) {
  place.dateTime = time.toISOString();
  place.title = whole.format(time);
  place.textContent = ago(time);
}

/** Shows all times of a document that are no values of its data, and keeps on. */
export function keepTimes(document) {
  const show = () => {
    for (const each of document.querySelectorAll("time:not(.literal, .date)")) showTime(each, new Date(each.dateTime));
  };
  show();
  setInterval(() => document.hidden || show(), PAUSE);
}
