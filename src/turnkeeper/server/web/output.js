// The output of a tool: its end first, its colours shown, and all of it on request.
import { html, useState } from "./html.js";
import { pieces } from "./ansi.js";
import { calm, plural } from "./format.js";

const LINES_SHOWN = 14;
const CHARS_SHOWN = 6000;
const CHARS_MAX = 300_000;

/** The end of a text: its last lines, and how many lines are not shown. */
export function ending(text, lines = LINES_SHOWN, chars = CHARS_SHOWN) {
  const cut = text.length > chars ? text.slice(-chars) : text;
  const all = cut.split("\n");
  const kept = all.slice(-lines).join("\n");
  const hidden = text.slice(0, text.length - kept.length);
  return { text: kept, hidden: hidden ? hidden.split("\n").length : 0 };
}

/** A text without the line breaks at its end. A pattern would look at each run of them again from every place in it. */
function withoutEnd(text) {
  let end = text.length;
  while (end > 0 && text[end - 1] === "\n") end -= 1;
  return text.slice(0, end);
}

export function Output({ text, label = "Output" }) {
  const [isWhole, setWhole] = useState(false);
  const clean = withoutEnd(calm(text).replace(/\r\n?/g, "\n"));
  const end = ending(clean);
  const shown = isWhole ? clean.slice(0, CHARS_MAX) : end.text;
  return html`<div class="output">
    ${!isWhole && end.hidden > 0 && html`<button class="quiet" onClick=${() => setWhole(true)}>Show ${plural(end.hidden, "line")} above</button>`}
    <pre tabindex="0" role="group" aria-label=${label}>${pieces(shown).map((one, nth) => (one.style ? html`<span class=${one.style} key=${nth}>${one.text}</span>` : one.text))}</pre>
    ${isWhole && clean.length > CHARS_MAX && html`<p class="note">${plural(clean.length - CHARS_MAX, "more character")} are not shown here. Copy takes them all.</p>`}
  </div>`;
}
