// What a search finds: titles that contain the text, and messages that contain all of its words.
import { html, useRead } from "./html.js";
import { at, get } from "./api.js";
import { ago, spelt } from "./format.js";

const SPECIAL = /[.*+?^${}()|[\]\\]/g;

/** A text with the words that were searched for marked in it. */
export function Marked({ text, words }) {
  const wanted = words.match(/[\p{L}\p{N}_]+/gu) ?? [];
  if (!wanted.length) return text;
  const pieces = text.split(new RegExp(`(${wanted.map((one) => one.replace(SPECIAL, "\\$&")).join("|")})`, "giu"));
  return pieces.map((piece, nth) => (nth % 2 ? html`<mark key=${nth}>${piece}</mark>` : piece));
}

export function Hits({ words }) {
  const titles = useRead(() => get(at("/experimental/session", { search: words.trim(), limit: 20 })), [words]);
  const said = useRead(() => get(at("/tk/search", { words, limit: 60 })), [words]);
  const messages = (said.value ?? []).filter((hit) => hit.messageID);
  return html`${titles.value?.length > 0 && html`<section class="group" aria-label="Titles"><h2>Titles</h2><ul>${titles.value.map((one) => html`<li key=${one.id}><a class="row" href=${`/s/${one.id}`}>
      <span class="row-title"><span class="row-words"><${Marked} text=${spelt(one.title)} words=${words} /></span></span><span class="row-figures"><time>${ago(one.time.updated)}</time></span></a></li>`)}</ul></section>`}
    <section class="group" aria-label="Words"><h2>Words</h2>
      ${said.error && html`<p class="empty">${said.error.message}</p>`}
      ${!said.value && !said.error && html`<p class="empty">Searching.</p>`}
      ${said.value && !messages.length && !said.error && html`<p class="empty">No message has these words.</p>`}
      <ul>${messages.map((hit, nth) => html`<li key=${nth}><a class="row row-hit" href=${`/s/${hit.sessionID}#m-${hit.messageID}`}><span class="tag">${hit.role === "user" ? "You" : "Assistant"}</span>
        <span class="row-title"><span class="row-words"><${Marked} text=${spelt(hit.snippet)} words=${words} /></span><span class="row-note">${spelt(hit.title)}</span></span></a></li>`)}</ul></section>`;
}
