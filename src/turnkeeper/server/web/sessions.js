// All sessions: what waits for the user, what runs, and the rest by project; with a search over titles and words.
import { html, useEffect, useRead, useState } from "./html.js";
import { at, get, post } from "./api.js";
import { ConnectionState } from "./session.js";
import { Help, action } from "./keys.js";
import { Problem } from "./pieces.js";
import { ago, money, plural, shortPath, spelt } from "./format.js";

const PAGE = 60;

async function overview() {
  const [answer, statuses, asks, here] = await Promise.all([
    page(null),
    get("/session/status"),
    get("/tk/asks"),
    get("/path"),
  ]);
  return { ...answer, statuses, asks, here };
}

async function page(cursor) {
  const answer = await fetch(at("/experimental/session", { roots: "true", limit: PAGE, cursor }));
  if (!answer.ok) throw new Error(`The sessions cannot be listed (${answer.status}).`);
  return { sessions: await answer.json(), older: answer.headers.get("x-next-cursor") };
}

export function SessionsPage({ connection, go }) {
  const read = useRead(overview, []);
  const [more, setMore] = useState([]);
  const [older, setOlder] = useState(null);
  const [words, setWords] = useState("");
  const [hasHelp, setHelp] = useState(false);
  useEffect(() => {
    document.title = "Turnkeeper";
    let timer = null;
    const stop = connection.listen((type) => {
      if (!/^(session\.(created|updated|deleted|status)|permission|question|gap)/.test(type)) return;
      clearTimeout(timer);
      timer = setTimeout(read.again, 250);
    });
    return () => { clearTimeout(timer); stop(); };
  }, []);
  useEffect(() => setOlder(read.value?.older ?? null), [read.value?.older]);
  useEffect(() => {
    const pressed = (event) => {
      const name = action(event);
      if (name === "search") { event.preventDefault(); document.querySelector(".search input")?.focus(); }
      if (name === "help") setHelp(true);
    };
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  }, []);
  const found = read.value;
  const sessions = found ? [...found.sessions, ...more] : [];
  const asks = found ? [...found.asks.permissions, ...found.asks.questions] : [];
  return html`<div class="home">
    <header class="top"><h1 class="brand"><span class="brand-mark" aria-hidden="true"></span>Turnkeeper</h1>
      <form class="search" role="search" onSubmit=${(event) => event.preventDefault()}><input type="search" placeholder="Search titles and everything that was said" aria-label="Search sessions" value=${words} onInput=${(event) => setWords(event.target.value)} /></form>
      ${asks.length > 0 && html`<span class="state state-wait"><span class="dot" aria-hidden="true"></span>${asks.length} waiting</span>`}
      <${ConnectionState} connection=${connection} /></header>
    <main class="list">
      ${read.error && html`<${Problem} error=${read.error} again=${read.again} />`}
      ${!found && !read.error && html`<p class="empty">Reading the sessions.</p>`}
      ${found && words.trim().length > 1 && html`<${Hits} words=${words} sessions=${sessions} go=${go} />`}
      ${found && words.trim().length <= 1 && html`<${Groups} found=${found} sessions=${sessions} asks=${asks} go=${go} />
        ${older && html`<button class="more" onClick=${async () => { const next = await page(older); setMore([...more, ...next.sessions]); setOlder(next.older); }}>Show older sessions</button>`}`}
    </main>
    ${hasHelp && html`<${Help} onClose=${() => setHelp(false)} />`}
  </div>`;
}

function Groups({ found, sessions, asks, go }) {
  const waiting = new Map();
  for (const ask of asks) waiting.set(ask.sessionID, ask);
  const known = new Map(sessions.map((one) => [one.id, one]));
  const running = sessions.filter((one) => found.statuses[one.id] && !waiting.has(one.id));
  const projects = new Map();
  for (const one of sessions) {
    const key = one.project?.id === "global" || !one.project ? one.directory : one.project.worktree;
    projects.set(key, [...(projects.get(key) ?? []), one]);
  }
  if (!projects.has(found.here.worktree) && !projects.has(found.here.directory)) projects.set(found.here.directory, []);
  return html`
    ${waiting.size > 0 && html`<section class="group group-wait" aria-label="Needs you"><h2>Needs you</h2><ul>${[...waiting].map(([id, ask]) => html`<${Row} key=${id} session=${known.get(id) ?? { id, title: "A child session", cost: 0, time: {} }} status="wait"
      note=${ask.permission ? `${ask.permission}: ${ask.metadata?.command ?? ask.patterns.join(", ")}` : ask.questions?.[0]?.question} />`)}</ul></section>`}
    ${running.length > 0 && html`<section class="group" aria-label="Running"><h2>Running</h2><ul>${running.map((one) => html`<${Row} key=${one.id} session=${one} status="busy" />`)}</ul></section>`}
    ${[...projects].map(([directory, some]) => html`<section class="group" key=${directory} aria-label=${directory}><h2><span title=${directory}>${spelt(shortPath(directory))}</span><${New} directory=${directory} go=${go} /></h2>
      ${some.length ? html`<ul>${some.map((one) => html`<${Row} key=${one.id} session=${one} status=${waiting.has(one.id) ? "wait" : found.statuses[one.id] ? "busy" : "idle"} />`)}</ul>` : html`<p class="empty">No sessions here yet.</p>`}</section>`)}`;
}

function New({ directory, go }) {
  const [error, setError] = useState(null);
  const create = async () => {
    try {
      go(`/s/${(await post(at("/session", { directory }), {})).id}`);
    } catch (problem) {
      setError(problem);
    }
  };
  return html`<button class="quiet" onClick=${create} aria-label=${`New session in ${directory}`}>New session</button>${error && html`<${Problem} error=${error} />`}`;
}

const WORDS = { wait: "waiting for you", busy: "running", idle: "" };

function Row({ session, status, note }) {
  const { summary } = session;
  return html`<li class=${`row row-${status}`}><a href=${`/s/${session.id}`}>
    <span class="dot" aria-hidden="true"></span>
    <span class="row-title">${spelt(session.title)}${note && html`<span class="row-note">${spelt(note).slice(0, 160)}</span>`}</span>
    ${WORDS[status] && html`<span class="row-status">${WORDS[status]}</span>`}
    <span class="row-figures">${summary?.files ? html`<span>${plural(summary.files, "file")} <span class="plus">+${summary.additions}</span> <span class="minus">−${summary.deletions}</span></span>` : ""}<span class="row-cost">${money(session.cost)}</span>
      <time>${session.time.updated ? ago(session.time.updated) : ""}</time></span></a></li>`;
}

function Hits({ words, sessions }) {
  const read = useRead(() => get(at("/tk/search", { words, limit: 60 })), [words]);
  const named = sessions.filter((one) => one.title.toLowerCase().includes(words.trim().toLowerCase()));
  return html`${named.length > 0 && html`<section class="group" aria-label="Titles"><h2>Titles</h2><ul>${named.map((one) => html`<${Row} key=${one.id} session=${one} status="idle" />`)}</ul></section>`}
    <section class="group" aria-label="Words"><h2>Words</h2>
      ${read.error && html`<p class="empty">${read.error.message}</p>`}
      ${read.value && !read.value.some((hit) => hit.messageID) && html`<p class="empty">Nobody said that.</p>`}
      <ul>${(read.value ?? []).filter((hit) => hit.messageID).map((hit, nth) => html`<li class="row" key=${nth}><a href=${`/s/${hit.sessionID}#m-${hit.messageID}`}><span class="tag">${hit.role === "user" ? "You" : hit.role}</span><span class="row-title">${spelt(hit.snippet)}<span class="row-note">${spelt(hit.title)}</span></span></a></li>`)}</ul></section>`;
}
