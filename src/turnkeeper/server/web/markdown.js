// Markdown as nodes: made in a worker with a deadline, sanitised here. What takes too long stays plain text.
import DOMPurify from "./vendor/purify.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "./html.js";
import { calm, plural } from "./format.js";

const DEADLINE_MS = 2500;
const TEXT_CHARS_MAX = 60_000; // What is longer is shown as it is, a piece at a time.
const PIECE_CHARS = 20_000;
const KEPT_MAX = 400;
const LIVE_MS = 100;

const ALLOWED = {
  ALLOWED_TAGS: [
    "a", "b", "blockquote", "br", "code", "del", "em", "h3", "h4", "h5", "h6", "hr", "i", "li", "ol", "p", "pre", "s", "span",
    "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
  ],
  ALLOWED_ATTR: ["href", "class", "start", "title"],
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  RETURN_DOM_FRAGMENT: true,
};

DOMPurify.addHook("afterSanitizeAttributes", (node) => {
  if (node.hasAttribute("class") && !/^shj-[a-z-]+( shj-[a-z-]+)*$/.test(node.getAttribute("class"))) node.removeAttribute("class");
  if (node.tagName === "A") {
    const address = node.getAttribute("href") ?? "";
    if (!/^(https?:|mailto:)/i.test(address)) node.removeAttribute("href");
    node.setAttribute("rel", "noopener noreferrer");
    node.setAttribute("target", "_blank");
    const host = hostOf(address);
    // A text that names another host than the link leads to is corrected. A host with letters that look like others is told.
    const named = /^\s*(?:https?:\/\/)?([\p{L}\p{N}-]+(?:\.[\p{L}\p{N}-]+)+)/iu.exec(node.textContent)?.[1].toLowerCase();
    const isUnclear = /(?:^|\.)xn--/.test(host) && named !== host;
    if (host && (isUnclear || (named && named !== host.toLowerCase()))) node.append(` (${host})`);
  }
});

function hostOf(address) {
  try {
    return new URL(address).host;
  } catch {
    return "";
  }
}

const policy = window.trustedTypes?.createPolicy("turnkeeper", { createScriptURL: (address) => address }) ?? {
  createScriptURL: (address) => address,
};

class Renderer {
  constructor() {
    this.waiting = new Map();
    this.queue = [];
    this.next = 0;
    this.worker = null;
    this.kept = new Map();
  }

  /** The HTML of a job {text} or {code, language}; null if it is too long or takes too long. */
  render(job) {
    const key = job.code !== undefined ? `${job.language}\n${job.code}` : `\n${job.text}`;
    const known = this.kept.get(key);
    if (known !== undefined) return Promise.resolve(known);
    if ((job.text ?? job.code).length > TEXT_CHARS_MAX) return Promise.resolve(null);
    return new Promise((resolve) => {
      this.queue.push({ job, resolve, key });
      this.work();
    });
  }

  work() {
    if (this.running || !this.queue.length) return;
    if (!this.worker) {
      this.worker = new Worker(policy.createScriptURL("/web/worker.js"), { type: "module" });
      this.worker.onmessage = ({ data }) => this.running?.id === data.id && this.done(data.html);
      this.worker.onerror = () => this.giveUp();
    }
    const task = this.queue.shift();
    const id = ++this.next;
    this.running = { id, task, timer: setTimeout(() => this.giveUp(), DEADLINE_MS) };
    this.worker.postMessage({ id, ...task.job });
  }

  done(found) {
    const { task, timer } = this.running;
    clearTimeout(timer);
    this.running = null;
    this.kept.set(task.key, found);
    if (this.kept.size > KEPT_MAX) this.kept.delete(this.kept.keys().next().value);
    task.resolve(found);
    this.work();
  }

  giveUp() {
    this.worker?.terminate();
    this.worker = null;
    if (this.running) this.done(null);
  }
}

const renderer = new Renderer();

/** Text as markdown, or as it is if it is too long for that. */
export function Markdown({ text: given, live }) {
  const text = calm(given);
  return text.length > TEXT_CHARS_MAX ? html`<${Pieces} text=${text} />` : html`<${Rendered} text=${text} live=${live} />`;
}

function Pieces({ text }) {
  const [chars, setChars] = useState(PIECE_CHARS);
  return html`<div class="prose plain">${text.slice(0, chars)}</div>
    ${chars < text.length && html`<button class="quiet" onClick=${() => setChars(chars + PIECE_CHARS)}>Show more of ${plural(text.length - chars, "character")}</button>`}`;
}

/** While text is live it is rendered at most ten times a second. */
function Rendered({ text, live }) {
  const place = useRef(null);
  const [shown, show] = useState({ text: null, found: null });
  const last = useRef(0);
  useEffect(() => {
    let current = true;
    const pause = live ? Math.max(0, last.current + LIVE_MS - Date.now()) : 0;
    const timer = setTimeout(async () => {
      last.current = Date.now();
      const found = await renderer.render({ text });
      if (current) show({ text, found });
    }, pause);
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [text, live]);
  useLayoutEffect(() => fill(place.current, shown.found), [shown.found]);
  if (shown.found === null) return html`<div class="prose plain">${text}</div>`;
  return html`<div class="prose" ref=${place} key="rendered"></div>`;
}

/** Source code with its colours. */
export function Code({ text: given, language }) {
  const text = calm(given);
  const place = useRef(null);
  const [found, show] = useState(null);
  useEffect(() => {
    let current = true;
    renderer.render({ code: text, language }).then((answer) => current && show(answer));
    return () => {
      current = false;
    };
  }, [text, language]);
  useLayoutEffect(() => fill(place.current, found === null ? null : `<code>${found}</code>`), [found]);
  return found === null ? html`<pre class="code"><code>${text}</code></pre>` : html`<pre class="code" ref=${place} key="rendered"></pre>`;
}

function fill(element, found) {
  if (!element || found === null) return;
  element.replaceChildren(DOMPurify.sanitize(found, ALLOWED));
  for (const block of element.querySelectorAll("pre")) block.tabIndex = 0;
}
