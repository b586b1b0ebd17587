// Dates of any year: in milliseconds, and as marks of an axis. No access to the document.
//
// XSD 1.1, part 2, appendix D.1 (the seven-property model): the year 0000 is 1 BC, -0001 is 2 BC. Date of JavaScript ends
// 271,821 years from 1970; these are days of the Gregorian calendar, also before it was introduced.

import { XSD } from "./terms.js";

const [SECOND, MINUTE, HOUR, DAY] = [1000, 60_000, 3_600_000, 86_400_000];
const YEAR = 365.2425 * DAY;
const FARTHEST = 1e12; // years: beyond, their days are no whole numbers of JavaScript
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const DATE = /^(-?\d{4,})(?:-(\d\d))?(?:-(\d\d))?(?:T(\d\d):(\d\d):(\d\d(?:\.\d+)?))?(Z|[+-]\d\d:\d\d)?$/;
const DATED = new Set([
  ...["date", "dateTime", "dateTimeStamp", "gYear", "gYearMonth"].map((name) => XSD + name),
  ...["Date", "DateTime"].flatMap((name) => [`http://schema.org/${name}`, `https://schema.org/${name}`]),
]);
const YEARLESS = new Set(["time", "gMonth", "gDay", "gMonthDay"].map((name) => XSD + name));
const STEPS = [
  ...[1, 5, 15, 30].map((count) => count * SECOND),
  ...[1, 5, 15, 30].map((count) => count * MINUTE),
  ...[1, 3, 6, 12].map((count) => count * HOUR),
  ...[1, 2, 7, 14].map((count) => count * DAY),
];

/** The time of a literal: {time, year, problem}, in milliseconds since 1970; with a `problem`, in words, it has none. Null:
 *  its datatype is no date. */
export function timeOf({ value, datatype }) {
  if (YEARLESS.has(datatype)) return { problem: "it has no year" };
  if (!DATED.has(datatype)) return null;
  const found = DATE.exec(value.trim());
  if (found === null) return { problem: "it is not written as a date" };
  const [year, month, day, hour, minute, second] = [...found.slice(1, 7)].map((each, index) => Number(each ?? (index < 3 ? 1 : 0)));
  if (Math.abs(year) > FARTHEST) return { problem: "its year is too far away" };
  const isDay = month >= 1 && month <= 12 && day >= 1 && day <= daysOfMonth(year, month);
  const isTime = hour < 24 ? minute < 60 && second < 60 : hour === 24 && minute === 0 && second === 0;
  if (!isDay || !isTime) return { problem: "the calendar does not have it" };
  const time = daysOf(year, month, day) * DAY + hour * HOUR + minute * MINUTE + second * SECOND;
  return { time: time - offsetOf(found[7]), year, problem: null };
}

function offsetOf(zone = "Z") {
  const [, sign, hours, minutes] = /^([+-])(\d\d):(\d\d)$/.exec(zone) ?? [null, "+", 0, 0];
  return (Number(hours) * HOUR + Number(minutes) * MINUTE) * (sign === "-" ? -1 : 1);
}

function daysOfMonth(year, month) {
  return daysOf(month === 12 ? year + 1 : year, (month % 12) + 1, 1) - daysOf(year, month, 1);
}

/** Days from 1970-01-01 to a date. Years begin in March here, so that a leap day ends its year. */
function daysOf(year, month, day) {
  const from = month <= 2 ? year - 1 : year;
  const era = Math.floor(from / 400);
  const within = from - era * 400;
  const dayOfYear = Math.floor((153 * (month > 2 ? month - 3 : month + 9) + 2) / 5) + day - 1;
  return era * 146_097 + within * 365 + Math.floor(within / 4) - Math.floor(within / 100) + dayOfYear - 719_468;
}

/** The date that is so many days after 1970-01-01: {year, month, day}. */
function dateOf(days) {
  const from = days + 719_468;
  const era = Math.floor(from / 146_097);
  const rest = from - era * 146_097;
  const within = Math.floor((rest - Math.floor(rest / 1460) + Math.floor(rest / 36_524) - Math.floor(rest / 146_096)) / 365);
  const dayOfYear = rest - (365 * within + Math.floor(within / 4) - Math.floor(within / 100));
  const place = Math.floor((5 * dayOfYear + 2) / 153);
  const month = place < 10 ? place + 3 : place - 9;
  const day = dayOfYear - Math.floor((153 * place + 2) / 5) + 1;
  return { year: era * 400 + within + (month <= 2 ? 1 : 0), month, day };
}

/** A year of XSD in words, with its era where it is needed: `754 BC` for -753, and `AD 5`. */
export function yearText(year) {
  if (year > 0 && year < 100) return `AD ${year}`;
  const [count, era] = year > 0 ? [year, ""] : [1 - year, " BC"];
  if (count < 10_000) return `${count}${era}`;
  const isRound = count >= 1_000_000 && count % 100_000 < 2;
  const format = isRound ? { notation: "compact", compactDisplay: "long" } : {};
  return `${new Intl.NumberFormat("en", { ...format, maximumFractionDigits: 1 }).format(count)}${era}`;
}

/** The marks of an axis between two times, at most so many, at round times in rising order: [{time, text}]. */
export function ticksOf(first, last, most) {
  const step = (last - first) / most;
  const fixed = STEPS.find((each) => each >= step);
  if (fixed !== undefined) return fixedTicks(first, last, fixed);
  const months = [1, 3, 6].find((each) => each * 31 * DAY >= step);
  return months === undefined ? yearTicks(first, last, step / YEAR) : monthTicks(first, last, months);
}

function fixedTicks(first, last, step) {
  const ticks = [];
  let before = null;
  for (let index = Math.ceil(first / step); index * step <= last; index += 1) {
    const time = index * step;
    const days = Math.floor(time / DAY);
    const { year, month, day } = dateOf(days);
    const date = `${day} ${MONTHS[month - 1]}${year === before?.year ? "" : ` ${yearText(year)}`}`;
    const parts = days === before?.days ? [] : [date];
    if (step < DAY) parts.push(clockOf(time - days * DAY, step < MINUTE));
    ticks.push({ time, text: parts.join(" ") });
    before = { year, days };
  }
  return ticks;
}

function clockOf(milliseconds, hasSeconds) {
  const numbers = [milliseconds / HOUR, (milliseconds % HOUR) / MINUTE, (milliseconds % MINUTE) / SECOND];
  return numbers.slice(0, hasSeconds ? 3 : 2).map((each) => String(Math.floor(each)).padStart(2, "0")).join(":");
}

function monthTicks(first, last, step) {
  const ticks = [];
  const { year, month } = dateOf(Math.floor(first / DAY));
  for (let index = Math.floor((month - 1) / step) * step; ; index += step) {
    const [of, at] = [year + Math.floor(index / 12), (index % 12) + 1];
    const time = daysOf(of, at, 1) * DAY;
    if (time > last) return ticks;
    if (time >= first) ticks.push({ time, text: `${MONTHS[at - 1]} ${yearText(of)}` });
  }
}

/** Years that are round in their era: 1500 BC, 1000 BC, 500 BC, AD 1, 500. */
function yearTicks(first, last, least) {
  const power = 10 ** Math.floor(Math.log10(least));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= least);
  const countOf = (time) => {
    const { year } = dateOf(Math.floor(time / DAY));
    return year > 0 ? year : year - 1; // there is no year 0 in an era
  };
  const ticks = [];
  for (let index = Math.floor(countOf(first) / step); index * step <= countOf(last) + 1; index += 1) {
    if (index === 0 && step === 1) continue; // which the next one is
    const year = index > 0 ? index * step : index < 0 ? index * step + 1 : 1;
    const time = daysOf(year, 1, 1) * DAY;
    if (time >= first && time <= last) ticks.push({ time, text: yearText(year) });
  }
  return ticks;
}
