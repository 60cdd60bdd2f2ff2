// Share: first what a link would mask and show, then the link; it can be withdrawn at any time.
import { html, useRead, useState } from "./html.js";
import { get, post, remove } from "./api.js";
import { Copy, Problem, Sheet } from "./pieces.js";
import { moment, plural, spelt, whole } from "./format.js";

/** `session.share` is set while there is a link. Its secret is only in the answer that made it. */
export function Share({ session, onClose }) {
  const report = useRead(() => get(`/tk/session/${session.id}/redactions`), [session.id]);
  const [link, setLink] = useState(null);
  const [isWithdrawn, setWithdrawn] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState(null);
  const attempt = async (work) => {
    setBusy(true);
    setError(null);
    try {
      await work();
    } catch (problem) {
      setError(problem);
    }
    setBusy(false);
  };
  const make = () => attempt(async () => { setLink(await post(`/tk/session/${session.id}/share`)); setWithdrawn(false); });
  const withdraw = () => attempt(async () => { await remove(`/session/${session.id}/share`); setLink(null); setWithdrawn(true); });
  const isShared = link || (session.share && !isWithdrawn);
  return html`<${Sheet} title="Share" onClose=${onClose}>
    ${error && html`<${Problem} error=${error} />`}
    <div role="status">${link
      ? html`<p>Everyone with this link can read the session, and what is said in it from now on${link.expires ? `, until ${moment(link.expires)}` : ""}.</p>
          <p class="share-link"><input class="wide-input" readonly aria-label="Link" value=${link.url} onFocus=${(event) => event.target.select()} /> <${Copy} text=${link.url} what="link" /></p>`
      : isWithdrawn ? html`<p>The link was withdrawn. It shows nothing any more.</p>`
      : session.share ? html`<p>There is a link to this session. It was shown when it was made, and cannot be shown again; a new one takes its place.</p>`
      : html`<p>A link lets everyone who has it read this session: messages, calls, changes of files and the task list. Nobody can change anything with it, and you can withdraw it.</p>`}</div>
    ${report.error ? html`<${Problem} error=${report.error} again=${report.again} />` : report.value ? html`<${Report} report=${report.value} />` : html`<p class="dim">Looking for secrets. Nothing is shared yet.</p>`}
    <div class="sheet-buttons"><button onClick=${onClose}>${link ? "Done" : "Cancel"}</button>
      ${isShared && html`<button disabled=${isBusy} onClick=${withdraw}>Withdraw</button>`}
      ${!link && html`<button class="primary" disabled=${!report.value || isBusy} onClick=${make}>Make a link</button>`}</div>
  <//>`;
}

function Report({ report }) {
  const { masked = [], doubtful = 0, doubtfulPlaces = [] } = report;
  return html`${masked.length
      ? html`<table class="figures"><caption>Masked in the link</caption><thead><tr><th scope="col">Kind</th><th scope="col" class="number">Places</th><th scope="col" class="number">Different</th></tr></thead>
          <tbody>${masked.map((one) => html`<tr key=${one.kind}><td>${spelt(one.kind)}</td><td class="number">${whole(one.count)}</td><td class="number">${whole(one.distinct)}</td></tr>`)}</tbody></table>`
      : html`<p class="note">No secret was found. Look through the session yourself: not every secret can be recognised.</p>`}
    ${doubtful > 0 && html`<p class="note">${plural(doubtful, "long random word")} ${doubtful === 1 ? "is shown as it is" : "are shown as they are"}, because most such words are hashes: ${spelt(doubtfulPlaces.slice(0, 10).join(", "))}</p>`}`;
}
