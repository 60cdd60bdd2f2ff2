// A unified diff, coloured line by line. The server made it; nothing is compared here.
import { html, useState } from "./html.js";
import { calm, plural } from "./format.js";

const LINES_MAX = 400;
const LINE_CHARS_MAX = 2000;

export function counts(patch) {
  let added = 0;
  let removed = 0;
  for (const line of String(patch).split("\n")) {
    if (line.startsWith("+") && !line.startsWith("+++")) added += 1;
    else if (line.startsWith("-") && !line.startsWith("---")) removed += 1;
  }
  return { added, removed };
}

function kind(line) {
  if (line.startsWith("@@")) return "hunk";
  if (/^(diff |index |Index: |=== |\+\+\+ |--- )/.test(line)) return "file";
  if (line.startsWith("+")) return "added";
  return line.startsWith("-") ? "removed" : "same";
}

/** The lines without the names before the first hunk, which stand above the diff, if it is of one file. */
function body(lines) {
  const first = lines.findIndex((line) => line.startsWith("@@"));
  const isOne = !lines.some((line, nth) => nth > first && line.startsWith("+++ ") && lines[nth - 1].startsWith("--- "));
  return first > 0 && isOne ? lines.slice(first) : lines;
}

const SIGNS = { added: "+", removed: "-", same: " ", hunk: "", file: "" };

export function Diff({ patch, label }) {
  const [isWhole, setWhole] = useState(false);
  const lines = body(String(patch).replace(/\n$/, "").split("\n"));
  const shown = isWhole ? lines : lines.slice(0, LINES_MAX);
  return html`<div class="diff" role="group" aria-label=${label ?? "Changes"}>
    <pre tabindex="0">${shown.map((line, nth) => {
      const name = kind(line);
      const text = name === "hunk" || name === "file" ? line : line.slice(1);
      return html`<span class=${`diff-${name}`} key=${nth}><span class="diff-sign">${SIGNS[name]}</span>${calm(text.slice(0, LINE_CHARS_MAX))}${"\n"}</span>`;
    })}</pre>
    ${shown.length < lines.length &&
    html`<button class="quiet" onClick=${() => setWhole(true)}>Show ${plural(lines.length - shown.length, "more line")}</button>`}
  </div>`;
}
