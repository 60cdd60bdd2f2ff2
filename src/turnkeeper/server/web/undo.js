// Undo: first what would become of each file, then the choice; and what brings back what is undone.
import { html, useEffect, useState } from "./html.js";
import { post } from "./api.js";
import { Problem, Sheet } from "./pieces.js";
import { plural, spelt } from "./format.js";

const WORDS = {
  restore: "put back as it was before",
  create: "brought back",
  delete: "removed: the session made it",
  merged: "put back; changes of others stay",
  conflict: "left as it is",
  unchanged: "already as it was",
};

export function Undo({ sessionId, messageId, rows, onClose, onDone }) {
  const [plan, setPlan] = useState(null);
  const [error, setError] = useState(null);
  const [isBusy, setBusy] = useState(false);
  useEffect(() => {
    post(`/session/${sessionId}/undo`, { messageID: messageId, dryRun: true }).then(setPlan, setError);
  }, []);
  const undo = async () => {
    setBusy(true);
    try {
      await post(`/session/${sessionId}/undo`, { messageID: messageId });
      onDone();
    } catch (problem) {
      setError(problem);
      setBusy(false);
    }
  };
  const files = plan?.files ?? [];
  const aside = rows.length;
  const prompts = promptsOf(rows);
  return html`<${Sheet} title="Undo from this prompt on" onClose=${onClose}>
    ${error && html`<${Problem} error=${error} />`}
    ${!plan && !error && html`<p class="dim">Looking at the files. Nothing is changed yet.</p>`}
    ${plan && html`
      <p>${plural(aside, "message")} ${aside === 1 ? "is" : "are"} set aside. ${prompts > 1 ? `Redo brings back one prompt at a time, Redo all brings back all ${prompts}` : "Redo brings it back"}, with the files.</p>
      ${files.length
        ? html`<table class="figures undo"><caption>Files</caption><thead><tr><th scope="col">File</th><th scope="col">It would be</th></tr></thead>
            <tbody>${files.map((file) => html`<tr key=${file.file} class=${`undo-${file.kind}`}><td><code>${spelt(file.file).split("/").map((name, nth) => (nth ? html`/<wbr />${name}` : name))}</code></td><td>${WORDS[file.kind]}${file.reason ? html`<br /><span class="dim">${spelt(file.reason)}</span>` : ""}</td></tr>`)}</tbody></table>`
        : html`<p class="dim">No file is changed.</p>`}
      ${plan.problem && html`<p class="note">${spelt(plan.problem)}</p>`}`}
    <div class="sheet-buttons"><button onClick=${onClose}>Cancel</button><button class="primary" disabled=${!plan || isBusy} onClick=${undo}>${isBusy ? "Undoing" : "Undo"}</button></div>
  <//>`;
}

function promptsOf(rows) {
  return rows.filter((row) => row.role === "user").length;
}

/** What is undone, until the next prompt: back one prompt at a time, or all at once. `rows` are set aside. */
export function SetAside({ sessionId, rows, attempt, onBack }) {
  const bring = (path) => attempt(async () => { await post(`/session/${sessionId}/${path}`); onBack(); });
  return html`<p class="set-aside"><span>${plural(rows.length, "message")} ${rows.length === 1 ? "is" : "are"} set aside. The next prompt removes what is set aside.</span>
    <span class="set-aside-buttons"><button onClick=${() => bring("redo")}>Redo</button>
      ${promptsOf(rows) > 1 && html`<button onClick=${() => bring("unrevert")}>Redo all</button>`}</span></p>`;
}
