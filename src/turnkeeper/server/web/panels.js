// The side panels: what is going on, files, context, cost and tree. Each reads what it shows from the server.
import { html, useRead, useState } from "./html.js";
import { get, at as query } from "./api.js";
import { Diff } from "./diff.js";
import { Meter, Problem, Sheet } from "./pieces.js";
import { ago, bytes, calm, count, moment, money, plural, shortPath, spelt, time, whole } from "./format.js";

function Read({ read, children }) {
  if (read.error) return html`<${Problem} error=${read.error} again=${read.again} />`;
  return read.value ? children(read.value) : html`<p class="dim">Reading.</p>`;
}

const TODO_SIGNS = { completed: "✓", in_progress: "▸", cancelled: "−" };

export function Now({ state, at, openSession, version }) {
  const tree = useRead(() => get(`/tk/session/${state.session.id}/tree`), [state.session.id, version]);
  const children = (tree.value?.relatives ?? []).filter((one) => one.relation === "child");
  return html`<div class="panel">
    <h3>Tasks</h3>
    ${state.todos.length
      ? html`<ul class="todos">${state.todos.map((todo, nth) => html`<li key=${nth} class=${`todo-${todo.status}`}><span aria-hidden="true">${TODO_SIGNS[todo.status] ?? "○"}</span><span class="sr">${todo.status}: </span>${spelt(todo.content)}</li>`)}</ul>`
      : html`<p class="dim">The agent keeps no task list.</p>`}
    ${state.session.revert && state.todos.length > 0 && html`<p class="note">Undo leaves the list as it is: it may name tasks of what is set aside.</p>`}
    ${children.length > 0 && html`<h3>Child sessions</h3><${Present} at=${at} /><ul class="plain-list">${children.map((one) => html`<li key=${one.id}><button class="link" onClick=${() => openSession(one.id)}>${spelt(one.title)}</button> <span class="dim">${one.status.type === "idle" ? "done" : "running"}, ${money(one.cost)}</span></li>`)}</ul>`}
    <h3>Session</h3>
    <dl class="facts">
      <div><dt>Directory</dt><dd title=${state.session.directory}>${shortPath(state.session.directory)}</dd></div>
      <div><dt>Messages</dt><dd>${whole(state.messages)}</dd></div>
      <div><dt>Events</dt><dd>${whole(state.seq)}</dd></div>
      <div><dt>Begun</dt><dd>${moment(state.session.time.created)}</dd></div>
      ${state.owner && !state.runsHere && html`<div><dt>Runs in</dt><dd>process ${state.owner.pid} on ${spelt(state.owner.host)}</dd></div>`}
      <div><dt>Id</dt><dd><code>${state.session.id}</code></dd></div>
    </dl>
  </div>`;
}

/** What only the present is known of says so while the past is shown. */
function Present({ at }) {
  return at === null ? null : html`<p class="note">Now, not as of event ${whole(at)}.</p>`;
}

export function Files({ session, at, version, blame }) {
  const kept = useRead(() => get(query(`/tk/session/${session.id}/changes`, { at })), [session.id, at, version]);
  // While an undo is pending, the session's diff has what is undone.
  const undone = useRead(() => (session.revert && at === null ? get(`/session/${session.id}/diff`) : Promise.resolve([])), [session.id, at, version]);
  return html`<div class="panel"><h3>Files that the session changed</h3>
    <${Read} read=${kept}>${(files) => (files.length ? html`<${FileList} files=${files} blame=${blame} />` : html`<p class="dim">No changed files are known.</p>`)}<//>
    ${undone.value?.length > 0 && html`<h3>Files of what is undone</h3><${FileList} files=${undone.value} />`}
  </div>`;
}

function FileList({ files, blame }) {
  const [open, setOpen] = useState(null);
  return html`<ul class="files">${files.map((file) => html`<li key=${file.file}>
    <button class="files-line" aria-expanded=${open === file.file ? "true" : "false"} onClick=${() => setOpen(open === file.file ? null : file.file)}>
      <span class="files-name">${spelt(file.file)}</span><span class="plus">+${file.additions}</span><span class="minus">−${file.deletions}</span></button>
    ${open === file.file && html`<div>${file.patch ? html`<${Diff} patch=${file.patch} label=${file.file} />` : html`<p class="dim">Its lines are not known.</p>`}
      ${blame && html`<button class="link" onClick=${() => blame(file.file)}>Who wrote each line</button>`}</div>`}</li>`)}</ul>`;
}

export function Blame({ sessionId, file, onClose, show }) {
  const read = useRead(() => get(query(`/tk/session/${sessionId}/blame`, { file })), [sessionId, file]);
  return html`<${Sheet} title=${`Who wrote ${shortPath(file)}`} onClose=${onClose} wide>
    <${Read} read=${read}>${(found) => html`<table class="blame"><caption class="sr">Lines below the turn that wrote them</caption>
      ${runs(found.lines.slice(0, 3000)).map(({ origin, lines }) => html`<tbody key=${lines[0].line}>
        <tr><th colspan="2" scope="rowgroup">${origin ? html`<button class="link" onClick=${() => show(origin.sessionID, origin.messageID)}>${origin.sessionID === sessionId ? "this session" : spelt(origin.slug)}${origin.calls?.[0] ? `, ${origin.calls[0].tool}` : ""}</button>` : "before, or by hand"}</th></tr>
        ${lines.map((line) => html`<tr key=${line.line}><td class="dim number">${line.line}</td><td><code>${calm(line.text)}</code></td></tr>`)}</tbody>`)}</table>
      ${found.leftOut ? html`<p class="note">${plural(found.leftOut, "older turn")} are not considered.</p>` : ""}`}
    <//>
  <//>`;
}

/** Lines in a row that the same turn wrote, or no session that is known. */
function runs(lines) {
  const found = [];
  for (const line of lines) {
    const last = found.at(-1);
    if (last && last.origin?.messageID === line.origin?.messageID) last.lines.push(line);
    else found.push({ origin: line.origin, lines: [line] });
  }
  return found;
}

export function Recalled({ sessionId, handle, onClose }) {
  const read = useRead(() => get(`/tk/session/${sessionId}/recall/${handle}?limit=300000`), [sessionId, handle]);
  return html`<${Sheet} title=${read.value ? spelt(read.value.label) : handle} onClose=${onClose} wide>
    <${Read} read=${read}>${(page) => html`<p class="note">${whole(page.total)} characters, exactly as they were recorded. Handle <code>${page.handle}</code>.</p>
      <pre class="code" tabindex="0">${calm(page.text)}</pre>${page.nextOffset ? html`<p class="note">The rest: <code>turnkeeper session recall ${sessionId} ${page.handle} --offset ${page.nextOffset}</code></p>` : ""}`}
    <//>
  <//>`;
}

export function Context({ store, state, version, compare, show }) {
  const id = state.session.id;
  const report = useRead(() => get(query(`/tk/session/${id}/context`, { at: store.seq })), [id, version, store.seq]);
  const shown = useRead(() => get(query(`/tk/session/${id}/shown`, { at: store.seq })), [id, version, store.seq]);
  const ledger = useRead(() => get(query(`/tk/session/${id}/ledger`, { at: store.seq })), [id, version, store.seq]);
  const paid = new Map((ledger.value?.rows ?? []).map((row) => [row.messageID, row.tokens]));
  const [open, setOpen] = useState(null);
  return html`<div class="panel">
    <h3>Window</h3>
    ${state.window ? html`<p><${Meter} value=${state.window.used / state.window.limit} label="Context window" /> ${count(state.window.used)} of ${count(state.window.limit)} tokens <span class="dim">(reported)</span></p>` : html`<p class="dim">Not known yet.</p>`}
    <${Read} read=${shown}>${(seen) => html`
      <h3>System context</h3>
      <ul class="plain-list">${seen.baseline.map((one) => {
        const known = report.value?.components.find((other) => other.key === one.key);
        return html`<li key=${one.key}><button class="files-line" aria-expanded=${open === one.key ? "true" : "false"} onClick=${() => setOpen(open === one.key ? null : one.key)}>
          <span class="files-name">${spelt(one.key)}</span><span class="dim">${known && known.state !== "baseline" ? `${known.state}, ` : ""}${bytes(known?.size ?? one.text.length)}</span></button>
          ${open === one.key && html`<pre class="code" tabindex="0">${calm(one.text.slice(0, 60_000))}</pre>`}</li>`;
      })}</ul>
      <h3>What the model is shown</h3>
      <p>${plural(seen.pieces.length, "text")}, ${count(seen.pieces.reduce((sum, one) => sum + one.shown, 0))} characters.
        ${seen.leftOut ? html` A summary stands for ${plural(seen.leftOut, "message")} with ${count(seen.leftOutChars)} characters.` : " No message is left out."} ${differ(seen.pieces)}</p>
      <button onClick=${() => compare(seen)}>Compare with the log</button>`}
    <//>
    <${Read} read=${report}>${(found) => html`
      ${found.messages.length > 0 && html`<h3>Changes that the model was told of</h3>
        <ul class="plain-list">${found.messages.slice(-60).reverse().map((one) => html`<li key=${one.id}><button class="link" onClick=${() => show(one.id)}>${time(one.time.created)}</button> ${spelt(one.updates.map((update) => update.key).join(", "))}</li>`)}</ul>`}
      <h3>Requests</h3>
      <table class="figures requests"><caption class="sr">How much of each request repeats the one before, and how much of it the provider read from its cache</caption>
        <thead><tr><th scope="col">At</th><th scope="col" title="Bytes that repeat the request before, measured">Could reuse</th><th scope="col" class="number" title="Tokens read from the cache, as the provider reported them">Cached</th></tr></thead>
        ${found.requests.slice(-60).reverse().map((one) => {
          const why = one.cause ?? one.note ?? unread(one, paid.get(one.messageID));
          return html`<tbody key=${one.messageID}><tr><td><button class="link" title=${bytes(one.size)} onClick=${() => show(one.messageID)}>${time(one.time)}</button></td>
            <td>${one.percent === null || one.percent === undefined ? "first" : html`<${Meter} value=${one.percent / 100} label="Reuse" isGood /> ${one.percent}%`}</td><td class="number">${cached(paid.get(one.messageID))}</td></tr>
            ${why && html`<tr><td colspan="3" class="requests-why"><span class="sr">Why not all: </span>${spelt(why)}</td></tr>`}</tbody>`;
        })}</table>
      <h3>Epochs</h3>
      <ol class="plain-list">${found.epochs.slice().reverse().map((one) => html`<li key=${one.number}>${one.number}: ${one.reason} <span class="dim">at event ${whole(one.seq)}, ${one.providerID}/${one.modelID}</span></li>`)}</ol>`}
    <//>
  </div>`;
}

/** How many texts the model does not see as the log holds them. */
function differ(pieces) {
  const found = pieces.filter((one) => one.state !== "whole").length;
  return found ? html`<b>${whole(found)} ${found === 1 ? "is" : "are"} cut, cleared or left out.</b>` : "";
}

/** The part of a request that its provider read from its cache, as it reported. */
function cached(tokens) {
  const sent = tokens ? tokens.input + tokens.cache.read + tokens.cache.write : 0;
  return sent ? `${Math.round((tokens.cache.read / sent) * 100)}%` : "";
}

/** What is to be said of a request that could be reused and of which nothing was read from the cache. One that failed has no figures. */
function unread(request, tokens) {
  return request.percent > 0 && cached(tokens) && tokens.cache.read === 0 ? "the provider reported no cache reads: it does not report them, or its cache had expired" : "";
}

export function Cost({ session, at, version, show }) {
  const read = useRead(() => get(query(`/tk/session/${session.id}/ledger`, { at })), [session.id, at, version]);
  return html`<div class="panel"><${Read} read=${read}>${(found) => html`
    <p class="total"><b>${money(found.total.cost)}</b> <span class="dim">in ${plural(found.total.rows, "request")}</span></p>
    ${at !== null && html`<p class="note">As of event ${whole(at)}, without child sessions.</p>`}
    ${found.children.length > 0 && html`<p>${money(found.totalCost)} with ${plural(found.children.length, "child session")}</p>`}
    <${Bars} rows=${found.rows.slice(-120)} show=${show} />
    <${Sums} title="By model" sums=${found.models} />
    <${Sums} title="By purpose" sums=${found.purposes} />
    ${found.children.length > 0 && html`<h3>Child sessions</h3><ul class="plain-list">${found.children.map((one) => html`<li key=${one.id}>${spelt(one.title)} <span class="dim">${money(one.cost)}</span></li>`)}</ul>`}`}
  <//></div>`;
}

function Sums({ title, sums }) {
  return html`<table class="figures"><caption>${title}</caption>
    <thead><tr><th scope="col">Name</th><th scope="col" class="number">In</th><th scope="col" class="number">Cached</th><th scope="col" class="number">Out</th><th scope="col" class="number">$</th></tr></thead>
    <tbody>${sums.map((one) => html`<tr key=${one.name}><td>${spelt(one.name.split("/").at(-1))}</td><td class="number">${count(one.tokens.input + one.tokens.cache.write)}</td><td class="number">${count(one.tokens.cache.read)}</td><td class="number">${count(one.tokens.output)}</td><td class="number">${money(one.cost)}</td></tr>`)}</tbody></table>`;
}

/** Tokens of each request as stacked bars, or its cost. The tables below say the same in words. */
function Bars({ rows, show }) {
  const [isCost, setCost] = useState(false);
  if (!rows.length) return html`<p class="dim">No request has been paid yet.</p>`;
  const tokens = (row) => row.tokens.input + row.tokens.cache.read + row.tokens.cache.write + row.tokens.output;
  const size = isCost ? (row) => row.cost : tokens;
  const largest = Math.max(...rows.map(size)) || 1;
  const width = 100 / rows.length;
  return html`<p class="choice" role="group" aria-label="What the bars show">${[["Tokens", false], ["Cost", true]].map(([name, value]) => html`<button key=${name} class="quiet" aria-pressed=${isCost === value ? "true" : "false"} onClick=${() => setCost(value)}>${name}</button>`)}</p>
    <svg class="bars" viewBox="0 0 100 40" preserveAspectRatio="none" role="img" aria-label=${`${isCost ? "Cost" : "Tokens"} of the last ${plural(rows.length, "request")}`}>
    ${rows.map((row, nth) => {
      let y = 40;
      return html`<g key=${nth} onClick=${() => row.messageID && show(row.messageID)}><title>${`${moment(row.time)}, ${row.purpose}: ${whole(tokens(row))} tokens, ${money(row.cost)}`}</title>
        ${(isCost ? [["in", row.cost]] : [["cache", row.tokens.cache.read], ["in", row.tokens.input + row.tokens.cache.write], ["out", row.tokens.output]]).map(([name, value]) => {
          const height = (value / largest) * 40;
          y -= height;
          return html`<rect key=${name} class=${`bar-${name}`} x=${nth * width + width * 0.1} y=${y} width=${width * 0.8} height=${height} />`;
        })}</g>`;
    })}</svg>
    <p class="legend">${isCost ? html`<span>highest: ${money(largest)}</span>` : html`<span><span class="key key-cache"></span>read from the cache</span> <span><span class="key key-in"></span>sent anew</span> <span><span class="key key-out"></span>answered</span>`}</p>`;
}

const RELATIONS = { parent: "parent", self: "this session", child: "child", fork: "fork", origin: "forked from" };

export function Tree({ session, at, version, openSession }) {
  const read = useRead(() => get(`/tk/session/${session.id}/tree`), [session.id, version]);
  return html`<div class="panel"><h3>Related sessions</h3><${Present} at=${at} /><${Read} read=${read}>${(found) => html`
    <ul class="tree">${found.relatives.map((one) => html`<li key=${`${one.relation}-${one.id}`} class=${`tree-${one.relation}`}>
      <span class="tag">${RELATIONS[one.relation]}${one.seq ? ` at ${whole(one.seq)}` : ""}</span>
      ${one.relation === "self" ? html`<b>${spelt(one.title)}</b>` : html`<button class="link" onClick=${() => openSession(one.id)}>${spelt(one.title)}</button>`}
      <span class="dim">${one.status.type === "idle" ? "" : "running, "}${money(one.cost)}, ${ago(one.updated)}</span></li>`)}</ul>
    ${found.isPartial ? html`<p class="note">Only the newest sessions of the project were searched for forks.</p>` : ""}`}
  <//></div>`;
}
