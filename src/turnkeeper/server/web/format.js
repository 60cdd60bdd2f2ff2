// Times, sizes and money as people read them, and text in which nothing is invisible.

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const day = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
const full = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium", hourCycle: "h23" });

const DAY_MS = 86_400_000;

export function time(ms) {
  return ms ? clock.format(ms) : "";
}

export function moment(ms) {
  return ms ? full.format(ms) : "";
}

/** How long ago: "12 min ago", "yesterday", "3 Nov". */
export function ago(ms, now = Date.now()) {
  const seconds = Math.max(0, Math.round((now - ms) / 1000));
  if (seconds < 60) return "now";
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  const midnight = new Date(now).setHours(0, 0, 0, 0);
  if (ms >= midnight) return clock.format(ms);
  if (ms >= midnight - DAY_MS) return `yesterday ${clock.format(ms)}`;
  return day.format(ms);
}

export function duration(ms) {
  if (ms === null || ms === undefined || Number.isNaN(ms)) return "";
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  const minutes = Math.floor(ms / 60_000);
  return minutes < 60 ? `${minutes} min ${Math.floor((ms % 60_000) / 1000)} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

export function money(cost) {
  if (!cost) return "$0.00";
  return cost < 0.01 ? `$${cost.toPrecision(2)}` : `$${cost.toFixed(2)}`;
}

/** The same, to the cent: for figures that are compared at a glance. */
export function cents(cost) {
  return cost > 0 && cost < 0.005 ? "<$0.01" : `$${cost.toFixed(2)}`;
}

export function count(value) {
  if (value < 1000) return String(value);
  if (value < 1_000_000) return `${(value / 1000).toFixed(value < 10_000 ? 1 : 0)}k`;
  return `${(value / 1_000_000).toFixed(1)}M`;
}

export function whole(value) {
  return value.toLocaleString("en-GB");
}

export function bytes(value) {
  if (value < 1024) return `${value} B`;
  return value < 1024 * 1024 ? `${(value / 1024).toFixed(1)} KB` : `${(value / 1024 / 1024).toFixed(1)} MB`;
}

/** How many bytes a data URL in base64 holds. */
export function dataSize(url) {
  const padding = /=*$/.exec(url.slice(-2))[0].length;
  return Math.floor((url.length - url.indexOf(",") - 1) * 0.75) - padding;
}

export function plural(value, noun) {
  return `${whole(value)} ${noun}${value === 1 ? "" : "s"}`;
}

/** The last two segments of a path, enough to tell it from others. */
export function shortPath(path) {
  const pieces = String(path).split("/").filter(Boolean);
  return pieces.length > 2 ? `…/${pieces.slice(-2).join("/")}` : String(path);
}

const DEFAULT_TITLE = /^((?:New|Child) session) - \d{4}-\d{2}-\d{2}T[\d:.]+Z$/;

/** The title of a session; without the time in it, as long as nobody has given it one. */
export function titled({ title }) {
  return spelt(title.replace(DEFAULT_TITLE, "$1"));
}

const PILED = /(\p{M}{100})\p{M}+/gu;

/** Text without the combining marks above a hundred on one letter: the browser lays out thousands of them for seconds. */
export function calm(text) {
  return text.replace(PILED, "$1");
}

const INVISIBLE = /[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\u00ad]/gu;

/** Text with bidirectional and invisible characters spelt out, for what a person decides on. */
export function spelt(text) {
  return calm(String(text)).replace(INVISIBLE, (one) => `<U+${one.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}>`);
}
