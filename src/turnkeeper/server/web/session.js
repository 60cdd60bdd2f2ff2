// The page of a session: transcript, dock, side panels and timeline; live, or as it was after an event.
import { html, useEffect, useLayoutEffect, useMemo, useRead, useRef, useState, useStore } from "./html.js";
import { get, patch, post, remove } from "./api.js";
import { Asks } from "./asks.js";
import { Compare } from "./compare.js";
import { Composer, Inbox, draftOf, kept } from "./composer.js";
import { Feed } from "./feed.js";
import { Help, action } from "./keys.js";
import { Message } from "./message.js";
import { Blame, Context, Cost, Files, Now, Recalled, Tree } from "./panels.js";
import { Meter, Problem, Sheet, Ticking } from "./pieces.js";
import { SessionStore } from "./session_store.js";
import { Share } from "./share.js";
import { Timeline } from "./timeline.js";
import { SetAside, Undo } from "./undo.js";
import { money, moment, plural, spelt, time, titled, whole } from "./format.js";

const PANELS = { now: "Now", files: "Files", context: "Context", cost: "Cost", tree: "Tree" };
const GUESS = { user: 96, assistant: 88, system: 34, summary: 200, compaction: 40 };

function guess(row) {
  const { role, lines = 0, chars = 0, calls = 0 } = row;
  return (GUESS[role] ?? 80) + Math.min(lines * 22 + (chars / 80) * 12, 4000) + calls * 12;
}

export function SessionPage({ id, at, anchor, connection, go }) {
  const live = useMemo(() => new SessionStore(id, connection), [id]);
  const past = useMemo(() => (at === null ? null : new SessionStore(id, connection, at)), [id, at]);
  useEffect(() => () => live.close(), [live]);
  useEffect(() => () => past?.close(), [past]);
  useStore(live);
  const store = useStore(past ?? live);
  if (live.isRemoved) return html`<main class="alone"><p class="empty">This session was removed. <a href="/">All sessions</a></p></main>`;
  const failed = live.error && !live.state ? live.error : past?.error && !past.state ? past.error : null;
  if (failed) return html`<main class="alone"><${Problem} error=${failed} again=${() => store.read()} /><p class="empty"><a href="/">All sessions</a></p></main>`;
  if (!live.state) return html`<main class="alone"><p class="empty">Reading the session.</p></main>`;
  return html`<${Opened} id=${id} at=${at} anchor=${anchor} connection=${connection} go=${go} live=${live} store=${store.state ? store : live} version=${store.version} />`;
}

const carried = new Map(); // By fork: what its prompt box begins with.

function Opened({ id, at, anchor, connection, go, live, store }) {
  const state = store.state;
  const { session } = state;
  const [panel, setPanel] = useState("now");
  const [isSideOpen, setSideOpen] = useState(false);
  const [hasTimeline, setTimeline] = useState(at !== null);
  const [density, setDensity] = useState(() => kept.get("density") ?? "normal");
  const [sheet, setSheet] = useState(null);
  const [draft, setDraft] = useState(() => carried.get(id) ?? null);
  useEffect(() => { carried.delete(id); }, []);
  const [problem, setProblem] = useState(null);
  const feed = useRef(null);
  const composer = useRef(null);
  const isPast = at !== null;
  const status = live.state.status;
  const settled = `${live.state.seq}-${status.type}`;
  const timeline = useRead(() => (hasTimeline || isPast ? get(`/tk/session/${id}/timeline`) : Promise.resolve(null)), [id, hasTimeline, isPast, settled]);

  const attempt = async (work) => {
    setProblem(null);
    try {
      return await work();
    } catch (error) {
      setProblem(error);
      return null;
    }
  };
  const open = (other) => go(`/s/${other}`);
  const show = (messageId) => {
    setSideOpen(false);
    if (!feed.current?.show(messageId, true)) setProblem({ message: "That message is not part of the history that is shown." });
  };
  const travel = (seq) => go(seq === null ? `/s/${id}` : `/s/${id}?at=${seq}`, true);
  const stop = () => attempt(() => post(`/session/${id}/abort`));
  const fork = (messageId) =>
    attempt(async () => {
      const made = await post(`/session/${id}/fork`, { ...(messageId ? { messageID: messageId } : {}), ...(isPast ? { at } : {}) });
      // The prompt that was forked before is said anew, or otherwise.
      if (messageId) carried.set(made.id, draftOf(store.message(messageId)?.parts ?? []));
      open(made.id);
    });
  const resume = () => attempt(() => post(`/tk/session/${id}/resume`));
  const compact = () => attempt(() => post(`/api/session/${id}/compact`));
  const takeBack = (message) =>
    attempt(async () => {
      const taken = await remove(`/tk/session/${id}/inbox/${message.info.id}`);
      setDraft(draftOf(taken.parts));
    });
  const rename = () => setSheet({ kind: "rename" });
  const tools = useMemo(
    () => ({
      density,
      recall: (handle) => setSheet({ kind: "recall", handle }),
      blame: (file) => setSheet({ kind: "blame", file }),
      openSession: open,
      link: (messageId) => {
        history.replaceState(null, "", `${location.pathname}${location.search}#m-${messageId}`);
        navigator.clipboard?.writeText(location.href).catch(() => {});
      },
      until: isPast ? state.event?.time : undefined,
      ...(isPast ? {} : { undo: (messageId) => setSheet({ kind: "undo", messageId }) }),
      fork,
    }),
    [density, id, at, store, isPast && state.event?.time],
  );

  const callOf = ({ tool }) => live.message(tool?.messageID)?.parts.find((part) => part.callID === tool.callID);
  const asked = new Map();
  for (const { tool } of isPast ? [] : [...live.state.permissions, ...live.state.questions]) {
    if (tool) asked.set(tool.messageID, [...(asked.get(tool.messageID) ?? []), tool.callID]);
  }
  const aside = session.revert ? live.rows.findIndex((row) => row.id === session.revert.messageID) : -1;
  const rows = store.rows;
  const last = rows.at(-1)?.id;
  const row = (one, place) => {
    const body = store.bodies.get(one.id);
    if (!body) return html`<article class=${`message message-${one.role} message-coming`} style=${{ minHeight: `${guess(one)}px` }} aria-label="Loading"><p class="dim">${one.title ?? ""}</p></article>`;
    const index = place.position - 1;
    return html`<${Message} message=${body.message} held=${body.held} seq=${one.isNew ? 0 : one.seq} isLast=${one.id === last} isHidden=${one.hidden === true} isAside=${aside >= 0 && index >= aside && !isPast}
      asked=${asked.get(one.id)?.join(",") ?? ""} tools=${tools} position=${place.position} size=${place.size} />`;
  };

  const shownAnchor = useRef(null);
  useEffect(() => {
    // The outline may come after the first messages, so the row that the address names may be missing at first.
    if (anchor !== shownAnchor.current && (!anchor || feed.current?.show(anchor, true))) shownAnchor.current = anchor;
  });

  useLayoutEffect(() => {
    const step = (direction) => {
      const turns = timeline.value?.turns.map((turn) => turn.end ?? turn.seq) ?? [];
      const here = at ?? Infinity;
      const next = direction < 0 ? turns.findLast((seq) => seq < here) : turns.find((seq) => seq > here);
      travel(next === undefined || next >= (timeline.value?.seq ?? 0) ? (direction < 0 && turns.length ? turns[0] : null) : next);
    };
    const move = (direction, role) => {
      const current = document.activeElement?.closest?.("[data-id]")?.dataset.id ?? feed.current?.anchor?.id ?? last;
      let place = rows.findIndex((one) => one.id === current) + direction;
      while (role && rows[place] && rows[place].role !== role) place += direction;
      if (rows[place]) feed.current.show(rows[place].id, true);
    };
    const acts = {
      help: () => setSheet({ kind: "help" }),
      search: () => setSheet({ kind: "search" }),
      next: () => move(1),
      previous: () => move(-1),
      nextPrompt: () => move(1, "user"),
      previousPrompt: () => move(-1, "user"),
      density: () => changeDensity(),
      timeline: () => setTimeline((before) => !before),
      back: () => { if (!hasTimeline) setTimeline(true); else step(-1); },
      forth: () => { if (isPast) step(1); },
      sessions: () => go("/"),
      ask: () => document.querySelector(".ask button")?.focus(),
      prompt: () => composer.current?.focus(),
      leave: () => { if (isSideOpen) setSideOpen(false); else if (isPast && !document.querySelector("dialog[open]") && document.activeElement?.tagName !== "TEXTAREA") travel(null); },
    };
    const pressed = (event) => {
      if (event.key === "." && event.ctrlKey && status.type !== "idle" && !isPast && !document.querySelector("dialog[open]")) {
        event.preventDefault();
        stop();
        return;
      }
      const name = action(event);
      if (!name || (document.querySelector("dialog[open]") && name !== "leave") || event.target.closest?.(".ask")) return;
      if (name !== "leave") event.preventDefault();
      acts[name]?.();
    };
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  });

  const changeDensity = () => {
    const next = density === "normal" ? "everything" : "normal";
    setDensity(next);
    kept.set("density", next);
  };

  const held = live.state.inbox.length;
  const isHeld = useLasting(status.type === "idle" && held > 0);
  const canResume = status.type === "idle" && !session.revert && (held ? isHeld : live.rows.at(-1)?.error);
  const waiting = live.state.permissions.length + live.state.questions.length;
  useEffect(() => {
    document.title = `${isPast ? "As of " + at + ": " : ""}${waiting ? `(${waiting}) ` : ""}${titled(session)} · Turnkeeper`;
  }, [waiting, session.title, isPast, at]);

  return html`<div class=${isPast ? "session session-past" : "session"}>
    <${Header} state=${state} live=${live} connection=${connection} isPast=${isPast} rename=${rename} waiting=${waiting}
      actions=${[
        { name: hasTimeline ? "Hide the timeline" : "Timeline", act: () => setTimeline(!hasTimeline) },
        { name: density === "normal" ? "Unfold all" : "Fold", act: changeDensity },
        { name: "Search", act: () => setSheet({ kind: "search" }) },
        { name: "Fork", act: () => fork(null) },
        ...(isPast ? [] : [{ name: "Compact", act: compact }, { name: "Share", act: () => setSheet({ kind: "share" }) }]),
        { name: "Keys", act: () => setSheet({ kind: "help" }) },
      ]} openSide=${() => setSideOpen(!isSideOpen)} isSideOpen=${isSideOpen} />
    ${(hasTimeline || isPast) && timeline.value && html`<${Timeline} timeline=${timeline.value} at=${at} go=${travel} />`}
    ${isPast && html`<p class="past-banner" role="status"><b>As of event ${whole(at)}</b> of ${whole(live.state.seq)}${state.event && store.seq === at ? html`<span>${moment(state.event.time)}</span><span class="dim">${state.event.type.replaceAll(/[._]/g, " ")}</span>` : ""}
      <button onClick=${() => travel(null)}>Back to now <kbd>Esc</kbd></button></p>`}
    <div class="columns">
      <nav class="outline" aria-label="Prompts of this session"><h2>Outline</h2><${OutlineList} rows=${rows} show=${show} /></nav>
      <main class="transcript" id="transcript">
        ${rows.length
          ? html`<${Feed} rows=${rows} row=${row} guess=${guess} need=${(first, end) => store.need(first, end)} label=${`Messages of ${session.title}`} identity=${store} isBusy=${status.type !== "idle"}
              handle=${(one) => { feed.current = one; }} />`
          : html`<p class="empty">Nothing was said yet. Write a prompt below.</p>`}
        <div class="dock">
          ${problem && html`<${Problem} error=${problem} />`}
          ${isPast
            ? html`<div class="past-dock"><span>This is the past; nothing here can change.</span><button class="primary" onClick=${() => fork(null)}>Fork from here</button></div>`
            : html`<${Asks} permissions=${live.state.permissions} questions=${live.state.questions} sessionId=${id} openSession=${open} callOf=${callOf} />
                ${session.revert && html`<${SetAside} sessionId=${id} rows=${aside < 0 ? [] : rows.slice(aside)} attempt=${attempt} onBack=${() => composer.current?.take()} />`}
                ${canResume && html`<p class="set-aside"><span>${held ? `${plural(held, "prompt")} ${held === 1 ? "waits" : "wait"}, and the session rests.` : `The last turn ${live.rows.at(-1).error === "MessageAbortedError" ? "did not end" : "failed"}. What was said so far is kept.`}</span><button onClick=${resume}>Continue</button></p>`}
                <${Inbox} inbox=${live.state.inbox} takeBack=${takeBack} />
                <${Composer} session=${session} status=${status} draft=${draft} onSent=${() => feed.current?.follow()} onStop=${stop} handle=${(one) => { composer.current = one; }} />`}
        </div>
      </main>
      <aside class=${isSideOpen ? "side side-open" : "side"} aria-label="About this session">
        <div class="tabs" role="tablist" aria-label="About this session">${Object.entries(PANELS).map(([name, title]) => html`<button key=${name} role="tab" id=${`tab-${name}`} aria-selected=${panel === name ? "true" : "false"} aria-controls="side-panel" tabindex=${panel === name ? 0 : -1}
          onClick=${() => setPanel(name)} onKeyDown=${(event) => turn(event, panel, setPanel)}>${title}</button>`)}</div>
        <div class="side-body" id="side-panel" role="tabpanel" aria-labelledby=${`tab-${panel}`} tabindex="0">
          ${panel === "now" && html`<${Now} state=${state} at=${at} openSession=${open} version=${settled} />`}
          ${panel === "files" && html`<${Files} session=${session} at=${at} version=${settled} blame=${tools.blame} />`}
          ${panel === "context" && html`<${Context} store=${store} state=${state} version=${settled} compare=${(seen) => setSheet({ kind: "compare", seen })} show=${show} />`}
          ${panel === "cost" && html`<${Cost} session=${session} at=${at} version=${settled} show=${show} />`}
          ${panel === "tree" && html`<${Tree} session=${session} at=${at} version=${settled} openSession=${open} />`}
        </div>
      </aside>
    </div>
    <${Announcer} live=${live} connection=${connection} />
    ${sheet?.kind === "help" && html`<${Help} onClose=${() => setSheet(null)} />`}
    ${sheet?.kind === "recall" && html`<${Recalled} sessionId=${id} handle=${sheet.handle} onClose=${() => setSheet(null)} />`}
    ${sheet?.kind === "compare" && html`<${Compare} seen=${sheet.seen} rows=${rows} recall=${tools.recall} show=${(messageId) => { setSheet(null); show(messageId); }} onClose=${() => setSheet(null)} />`}
    ${sheet?.kind === "blame" && html`<${Blame} sessionId=${id} file=${sheet.file} onClose=${() => setSheet(null)} show=${(other, messageId) => { setSheet(null); if (other === id) show(messageId); else go(`/s/${other}#m-${messageId}`); }} />`}
    ${sheet?.kind === "search" && html`<${Search} id=${id} onClose=${() => setSheet(null)} show=${(messageId) => { setSheet(null); show(messageId); }} />`}
    ${sheet?.kind === "share" && html`<${Share} session=${live.state.session} onClose=${() => setSheet(null)} />`}
    ${sheet?.kind === "rename" && html`<${Rename} session=${session} onClose=${() => setSheet(null)} />`}
    ${sheet?.kind === "undo" && html`<${Undo} sessionId=${id} messageId=${sheet.messageId} rows=${live.rows.slice(live.rows.findIndex((one) => one.id === sheet.messageId))} onClose=${() => setSheet(null)}
      onDone=${() => {
        setSheet(null);
        setDraft(draftOf(live.message(sheet.messageId)?.parts ?? []));
      }} />`}
  </div>`;
}

/** Whether something has been true for a second: a prompt also waits for a moment before it is taken up. */
function useLasting(isSo) {
  const [isLasting, set] = useState(false);
  useEffect(() => {
    set(false);
    const timer = isSo ? setTimeout(() => set(true), 1000) : null;
    return () => clearTimeout(timer);
  }, [isSo]);
  return isSo && isLasting;
}

function turn(event, panel, setPanel) {
  const names = Object.keys(PANELS);
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  event.preventDefault();
  const next = names[(names.indexOf(panel) + step + names.length) % names.length];
  setPanel(next);
  document.getElementById(`tab-${next}`)?.focus();
}

const STATUS = { idle: "Resting", busy: "Running", retry: "Trying again" };

function Header({ state, live, connection, isPast, rename, waiting, actions, openSide, isSideOpen }) {
  const { session, window: used } = state;
  const status = isPast ? state.status : live.state.status;
  const last = live.rows.at(-1);
  const hasFailed = !isPast && status.type === "idle" && last?.error && last.error !== "MessageAbortedError";
  const word = waiting && !isPast ? "Waiting for you" : hasFailed ? "Failed" : STATUS[status.type] ?? status.type;
  const kind = waiting && !isPast ? "wait" : hasFailed ? "failed" : status.type;
  const summary = session.summary;
  return html`<header class="top">
    <a class="back" href="/" aria-label="All sessions">‹<span class="back-word"> Sessions</span></a>
    <h1><button class="title" onClick=${rename} title="Rename">${titled(session)}</button></h1>
    <span class=${`state state-${kind}`}><span class="dot" aria-hidden="true"></span>${word}</span>
    <span class="top-figures">
      ${used && html`<span title="Context window, as the provider reported it">window ${Math.round((used.used / used.limit) * 100)}% <${Meter} value=${used.used / used.limit} label="Context window" /></span>`}
      <span>${money(session.cost)}</span>
      ${summary && (summary.additions > 0 || summary.deletions > 0) && html`<span>${session.revert ? "undone: " : ""}<span class="plus">+${summary.additions}</span> <span class="minus">−${summary.deletions}</span></span>`}
    </span>
    <${ConnectionState} connection=${connection} live=${live} />
    <${Menu} actions=${actions} />
    <button class="side-toggle" aria-expanded=${isSideOpen ? "true" : "false"} onClick=${openSide}>Details</button>
  </header>`;
}

function Menu({ actions }) {
  const box = useRef(null);
  const close = () => { box.current.open = false; };
  /** The focus goes to what opened the menu, so that a dialog has a place to give it back to. */
  const leave = () => { close(); box.current.firstElementChild.focus(); };
  const pressed = (event) => {
    if (event.key !== "Escape" || !box.current.open) return;
    event.stopPropagation();
    leave();
  };
  const left = (event) => { if (event.relatedTarget && !box.current.contains(event.relatedTarget)) close(); };
  return html`<details class="menu" ref=${box} onKeyDown=${pressed} onFocusOut=${left}><summary aria-label="Actions">Actions</summary>
    <div>${actions.map((one) => html`<button key=${one.name} onClick=${() => { leave(); one.act(); }}>${one.name}</button>`)}</div></details>`;
}

export function ConnectionState({ connection, live }) {
  useStore(connection);
  if (connection.state === "live") return html`<span class="line line-live">live</span>`;
  if (connection.state === "connecting") return html`<span class="line">connecting</span>`;
  if (connection.state === "refused") return html`<span class="line line-bad">no password</span>`;
  if (connection.state === "hidden") return html`<span class="line">paused</span>`;
  return html`<span class="line line-bad" role="status">connection lost <${Ticking} since=${connection.since} /> ago${live?.state ? `; complete up to event ${whole(live.state.seq)}` : ""} <button class="link" onClick=${() => connection.retry()}>Try now</button></span>`;
}

const FAILED = { MessageAbortedError: "stopped", ProviderAuthError: "key refused", ContextOverflowError: "context window full", MessageOutputLengthError: "answer too long" };
const OUTLINE_ROWS = 300; // As many prompts are listed at once.

function OutlineList({ rows, show }) {
  const prompts = rows.filter((row) => row.role === "user" || row.role === "summary" || row.error);
  const [size, setSize] = useState(OUTLINE_ROWS);
  return html`${prompts.length > size && html`<button class="quiet" onClick=${() => setSize(size + OUTLINE_ROWS)}>Show ${plural(Math.min(OUTLINE_ROWS, prompts.length - size), "earlier prompt")}</button>`}
    <ol>${prompts.slice(-size).map((row) => html`<li key=${row.id}><button class=${`outline-${row.error ? "error" : row.role}`} onClick=${() => show(row.id)}><span class="dim">${time(row.time)}</span> ${row.error ? `× ${FAILED[row.error] ?? "failed"}` : row.role === "summary" ? "◇ summary" : spelt(row.title ?? "") || "prompt"}</button></li>`)}</ol>`;
}

const SAID = { idle: "The session rests.", retry: "The request failed and is tried again.", busy: "The session runs." };
const QUIET_MS = 5000; // So long after a status was said, the next one waits.

/** Says in words, and seldom, what others see. The newest status is always said. */
function Announcer({ live, connection }) {
  const [said, say] = useState("");
  const last = useRef({ status: live.state.status.type, at: 0 });
  const status = live.state.status.type;
  const asks = live.state.permissions.length + live.state.questions.length;
  useEffect(() => {
    if (last.current.status === status) return undefined;
    const timer = setTimeout(() => {
      say(SAID[status] ?? SAID.busy);
      last.current = { status, at: Date.now() };
    }, Math.max(0, last.current.at + QUIET_MS - Date.now()));
    return () => clearTimeout(timer);
  }, [status]);
  useStore(connection);
  return html`<div class="sr"><div role="status">${connection.state === "waiting" ? "The connection is lost." : said}</div><div role="alert">${asks ? `${plural(asks, "request")} ${asks === 1 ? "waits" : "wait"} for you.` : ""}</div></div>`;
}

function Search({ id, onClose, show }) {
  const [words, setWords] = useState("");
  const read = useRead(() => (words.trim().length > 1 ? get(`/tk/search?${new URLSearchParams({ words, session: id })}`) : Promise.resolve([])), [words]);
  return html`<${Sheet} title="Search this session" onClose=${onClose}>
    <input class="wide-input" type="search" autofocus placeholder="Words that were said, also what was compacted away" aria-label="Words" value=${words} onInput=${(event) => setWords(event.target.value)} />
    ${read.error && words.trim() && html`<p class="dim">${read.error.message}</p>`}
    <ul class="hits">${(read.value ?? []).filter((hit) => hit.messageID).map((hit, nth) => html`<li key=${nth}><button onClick=${() => show(hit.messageID)}><span class="tag">${hit.role === "user" ? "You" : hit.role}</span> ${spelt(hit.snippet)}</button></li>`)}</ul>
  <//>`;
}

function Rename({ session, onClose }) {
  const [title, setTitle] = useState(session.title);
  const [error, setError] = useState(null);
  const save = async (event) => {
    event.preventDefault();
    try {
      await patch(`/session/${session.id}`, { title });
      onClose();
    } catch (problem) {
      setError(problem);
    }
  };
  return html`<${Sheet} title="Rename" onClose=${onClose}><form onSubmit=${save}>${error && html`<${Problem} error=${error} />`}
    <input class="wide-input" autofocus value=${title} aria-label="Title" onInput=${(event) => setTitle(event.target.value)} />
    <div class="sheet-buttons"><button type="button" onClick=${onClose}>Cancel</button><button class="primary" disabled=${!title.trim()}>Rename</button></div></form><//>`;
}
