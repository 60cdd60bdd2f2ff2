// What the model sees of a session next to what the log holds: two columns, a row for each text.
import { html, useState } from "./html.js";
import { Sheet } from "./pieces.js";
import { bytes, count, plural, spelt, time, whole } from "./format.js";

const LISTED = 200; // Texts or messages that are listed at once.
const STATES = { bounded: "the model is not shown its middle", pruned: "cleared for the model", "left out": "left out of requests" };

/** `seen` is what the server tells of the next request, `rows` the outline of the session. */
export function Compare({ seen, rows, recall, show, onClose }) {
  const different = seen.pieces.filter((one) => one.state !== "whole");
  const [isAll, setAll] = useState(different.length === 0);
  const [size, setSize] = useState(LISTED);
  const listed = isAll ? seen.pieces : different;
  const hidden = rows.filter((row) => row.hidden);
  return html`<${Sheet} title="What the model sees, and what the log holds" onClose=${onClose} wide>
    <p>The next request has ${plural(seen.pieces.length, "text")} of the history. ${different.length ? `${whole(different.length)} of them ${different.length === 1 ? "differs" : "differ"} from the log.` : "Each is as the log holds it."}
      ${seen.leftOut ? ` ${plural(seen.leftOut, "message")} ${seen.leftOut === 1 ? "is" : "are"} in the log only.` : ""}</p>
    ${different.length > 0 && html`<p class="choice" role="group" aria-label="Which texts">${[["What differs", false], ["All", true]].map(([name, value]) => html`<button key=${name} class="quiet" aria-pressed=${isAll === value ? "true" : "false"} onClick=${() => setAll(value)}>${name}</button>`)}</p>`}
    <table class="compare"><caption class="sr">Each text as the next request has it, and as it was recorded</caption>
      <thead><tr><th scope="col">The model sees</th><th scope="col">The log holds</th></tr></thead>
      <tbody>
        ${seen.baseline.length > 0 && html`<tr><td><b>system context</b> <span class="dim">${plural(seen.baseline.length, "text")}, ${bytes(seen.baseline.reduce((sum, one) => sum + one.text.length, 0))}</span></td><td class="dim">the same</td></tr>`}
        ${seen.leftOut > 0 && html`<tr><td class="dim">nothing${rows.some((row) => row.role === "summary") ? ", but for the summary" : ""}</td><td><${Hidden} rows=${hidden} seen=${seen} show=${show} /></td></tr>`}
        ${listed.length > size && html`<tr><td colspan="2"><button class="quiet" onClick=${() => setSize(size + LISTED)}>Show ${plural(Math.min(LISTED, listed.length - size), "earlier text")}</button></td></tr>`}
        ${listed.slice(-size).map((one) => html`<tr key=${`${one.messageID} ${one.partID} ${one.handle} ${one.label}`}>
          <td>${one.excerpt ? html`<b>${spelt(one.label).slice(0, 80)}</b> <span class="dim">${plural(one.state === "pruned" ? 0 : one.shown, "character")}</span><div class="excerpt">${spelt(one.excerpt)}${one.excerpt.length < one.shown ? " …" : ""}</div>` : html`<span class="dim">nothing</span>`}</td>
          <td>${one.state === "whole" ? html`<span class="dim">the same</span>` : html`<b>${spelt(one.label).slice(0, 80)}</b> <span class="dim">${plural(one.total, "character")}, ${STATES[one.state]}</span> <button class="link" onClick=${() => recall(one.handle)}>Recall</button>`}
            ${" "}<button class="link" onClick=${() => show(one.messageID)}>event ${whole(Math.floor(one.seq))}</button></td></tr>`)}
      </tbody></table>
  <//>`;
}

/** The messages that no request has any more. */
function Hidden({ rows, seen, show }) {
  return html`<details><summary>${plural(seen.leftOut, "message")}, ${count(seen.leftOutChars)} characters</summary>
    <ul class="plain-list">${rows.slice(-LISTED).map((row) => html`<li key=${row.id}><button class="link" onClick=${() => show(row.id)}>${time(row.time)} ${row.role === "user" ? "You" : row.role}</button> ${spelt(row.title ?? "").slice(0, 120)}</li>`)}</ul>
    ${rows.length > LISTED && html`<p class="note">${plural(rows.length - LISTED, "earlier message")} not listed.</p>`}</details>`;
}
