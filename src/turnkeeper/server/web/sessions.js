// All sessions: what waits for the user, what runs, and all by project, with children and forks below their session.
import { html, useEffect, useRead, useState } from "./html.js";
import { at, get, post } from "./api.js";
import { requestLine } from "./asks.js";
import { ConnectionState } from "./session.js";
import { Help, action } from "./keys.js";
import { Hits } from "./hits.js";
import { Problem } from "./pieces.js";
import { ago, cents, plural, shortPath, spelt, titled, whole } from "./format.js";

const PAGE = 60;
const BELOW = 5; // As many children and forks of a session are listed at once.

async function overview() {
  const [page, asks, projects, here] = await Promise.all([older(null), get("/tk/asks"), get("/project"), get("/path")]);
  return { ...page, asks, worktrees: new Map(projects.map((one) => [one.id, one.worktree])), here };
}

const older = (cursor) => get(at("/tk/sessions", { limit: PAGE, cursor }));

/** `asked` are the words in the address: it follows the search field, so that a search can be reloaded and bookmarked. */
export function SessionsPage({ asked, connection, go }) {
  const read = useRead(overview, []);
  const [more, setMore] = useState({ items: [], older: undefined });
  const [words, setWords] = useState(asked);
  const [hasHelp, setHelp] = useState(false);
  const [problem, setProblem] = useState(null);
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
  // A session that was used meanwhile is on the first page, too.
  const listed = found ? [...new Map([...more.items, ...found.items].map((one) => [one.id, one])).values()] : [];
  const sessions = listed.sort((one, other) => other.updated - one.updated);
  const asks = found ? [...found.asks.permissions, ...found.asks.questions] : [];
  const cursor = more.older === undefined ? found?.older : more.older;
  const showOlder = async () => {
    try {
      const next = await older(cursor);
      setMore({ items: [...more.items, ...next.items], older: next.older ?? null });
      setProblem(null);
    } catch (error) {
      setProblem(error);
    }
  };
  const search = (some) => {
    setWords(some);
    try {
      history.replaceState(null, "", at("/", { q: some }));
    } catch {
      // A browser allows so many changes of the address in a while. What is typed later is written again.
    }
  };
  const isSearch = words.trim().length > 1;
  return html`<div class="home">
    <header class="top"><h1 class="brand"><span class="brand-mark" aria-hidden="true"></span>Turnkeeper</h1>
      <form class="search" role="search" onSubmit=${(event) => event.preventDefault()}><input type="search" placeholder="Search titles and words" aria-label="Search titles and everything that was said" value=${words} onInput=${(event) => search(event.target.value)} /></form>
      ${asks.length > 0 && html`<span class="state state-wait"><span class="dot" aria-hidden="true"></span>${asks.length} waiting</span>`}
      <${ConnectionState} connection=${connection} /></header>
    <main class="list">
      ${read.error && html`<${Problem} error=${read.error} again=${read.again} />`}
      ${!found && !read.error && html`<p class="empty">Reading the sessions.</p>`}
      ${found && isSearch && html`<${Hits} words=${words} />`}
      ${found && !isSearch && html`<${Groups} found=${found} sessions=${sessions} asks=${asks} go=${go} />
        ${problem && html`<${Problem} error=${problem} />`}
        ${cursor && html`<button class="more" onClick=${showOlder}>Show older sessions</button>`}`}
    </main>
    ${hasHelp && html`<${Help} onClose=${() => setHelp(false)} />`}
  </div>`;
}

/** Sessions as trees: children below their parent, forks below their origin. The newest family comes first. */
export function families(sessions) {
  const nodes = new Map(sessions.map((one) => [one.id, { session: one, below: [], above: null }]));
  const top = (node) => (node.above ? top(node.above) : node);
  for (const node of nodes.values()) {
    const above = nodes.get(node.session.parentID) ?? nodes.get(node.session.originID);
    if (!above || top(above) === node) continue; // An imported session may name itself.
    node.above = above;
    above.below.push(node);
  }
  return [...new Set([...nodes.values()].map(top))];
}

function Groups({ found, sessions, asks, go }) {
  const waiting = new Map(asks.map((ask) => [ask.sessionID, ask]));
  const known = new Map(sessions.map((one) => [one.id, one]));
  const running = sessions.filter((one) => one.status.type !== "idle" && !waiting.has(one.id));
  const projects = new Map();
  for (const family of families(sessions)) {
    const { session } = family;
    const worktree = session.projectID === "global" ? null : found.worktrees.get(session.projectID);
    const key = worktree ?? session.directory;
    projects.set(key, [...(projects.get(key) ?? []), family]);
  }
  if (!projects.has(found.here.worktree) && !projects.has(found.here.directory)) projects.set(found.here.directory, []);
  return html`
    ${waiting.size > 0 && html`<section class="group group-wait" aria-label="Needs you"><h2>Needs you</h2><ul>${[...waiting].map(([id, ask]) => html`<li key=${id}><${Row} session=${known.get(id) ?? { id, title: "A session that is not listed", cost: 0 }} isWaiting parent=${known.get(known.get(id)?.parentID)}
      note=${ask.permission ? requestLine(ask) : ask.questions?.[0]?.question} /></li>`)}</ul></section>`}
    ${running.length > 0 && html`<section class="group" aria-label="Running"><h2>Running</h2><ul>${running.map((one) => html`<li key=${one.id}><${Row} session=${one} parent=${known.get(one.parentID)} /></li>`)}</ul></section>`}
    ${[...projects].map(([directory, some]) => html`<section class="group" key=${directory} aria-label=${directory}><h2><span title=${directory}>${spelt(shortPath(directory))}</span><${New} directory=${directory} go=${go} /></h2>
      ${some.length ? html`<ul>${some.map((one) => html`<${Branch} key=${one.session.id} node=${one} waiting=${waiting} />`)}</ul>` : html`<p class="empty">No sessions here yet.</p>`}</section>`)}`;
}

/** A session with what is below it. */
function Branch({ node, waiting }) {
  const [size, setSize] = useState(BELOW);
  const { session, below } = node;
  const rest = below.length - size;
  return html`<li><${Row} session=${session} isWaiting=${waiting.has(session.id)} />
    ${below.length > 0 && html`<ul class="below" aria-label=${`Children and forks of ${session.title}`}>${below.slice(0, size).map((one) => html`<${Branch} key=${one.session.id} node=${one} waiting=${waiting} />`)}
      ${rest > 0 && html`<li><button class="quiet" onClick=${() => setSize(below.length)}>Show ${whole(rest)} more</button></li>`}</ul>`}</li>`;
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

function condition(session, isWaiting) {
  if (isWaiting) return ["wait", "waiting for you"];
  if (session.status && session.status.type !== "idle") return session.status.type === "retry" ? ["wait", "trying again"] : ["busy", "running"];
  return session.failure ? ["failed", "failed"] : ["idle", ""];
}

function Row({ session, isWaiting, parent, note }) {
  const [kind, word] = condition(session, isWaiting);
  const { summary } = session;
  const said = note ?? (kind === "failed" ? session.failure : null);
  const total = session.totalCost ?? session.cost;
  return html`<a class=${`row row-${kind}`} href=${`/s/${session.id}`}>
    <span class="dot" aria-hidden="true"></span>
    <span class="row-title"><span class="row-words">${session.parentID ? html`<span class="tag">child</span> ` : session.originID ? html`<span class="tag">fork${session.originSeq ? ` at ${session.originSeq}` : ""}</span> ` : ""}${titled(session)}</span>
      ${parent && html`<span class="row-note">of ${titled(parent)}</span>`}${said && html`<span class="row-note">${spelt(said).slice(0, 160)}</span>`}</span>
    <span class="row-figures">${word && html`<span class="row-status">${word}</span>`}
      ${summary?.files ? html`<span class="row-files">${session.isUndone ? "undone: " : ""}${plural(summary.files, "file")} <span class="plus">+${summary.additions}</span> <span class="minus">−${summary.deletions}</span></span>` : ""}
      <span class="row-cost" title=${total > session.cost ? `${cents(session.cost)} without its child sessions` : null}>${cents(total)}</span>
      <time>${session.updated ? ago(session.updated) : ""}</time></span></a>`;
}
