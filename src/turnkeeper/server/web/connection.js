// One event stream for the whole page. A lost line is taken up again at the last event that was heard.

const SILENT_MS = 25_000; // The server says something every 10 s.
const HIDDEN_MS = 60_000; // A browser allows six connections for all tabs together, so hidden ones give theirs back.
const WAIT_MS = [250, 500, 1000, 2000, 4000, 8000, 15_000];

export const LIVE = "turnkeeper-live"; // The event of the window when the server can be reached again.

export class Connection {
  constructor() {
    this.state = "connecting"; // connecting, live, waiting, hidden, refused
    this.since = Date.now();
    this.heard = 0;
    this.listeners = new Set();
    this.watchers = new Set();
    this.lastId = null;
    this.tries = 0;
    this.retryAt = 0;
    this.abort = null;
    this.timer = null;
    document.addEventListener("visibilitychange", () => this.seen());
    window.addEventListener("online", () => this.retry());
    // A page that was left is kept for the button "back", and its stream would stay open: after six pages nothing loads.
    window.addEventListener("pagehide", () => this.leave());
    window.addEventListener("pageshow", () => this.retry());
    this.open();
  }

  /** Hear of each event: (type, properties, directory). "gap" comes first if some were missed for good. */
  listen(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Hear of each change of the connection's state. */
  subscribe(watcher) {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  }

  become(state) {
    if (state !== this.state) {
      this.state = state;
      this.since = Date.now();
      if (state === "live") window.dispatchEvent(new Event(LIVE));
    }
    for (const watcher of this.watchers) watcher();
  }

  seen() {
    clearTimeout(this.hiding);
    if (document.hidden) {
      this.hiding = setTimeout(() => this.leave(), HIDDEN_MS);
    } else {
      this.retry();
    }
  }

  /** Close the stream until the page is seen again. */
  leave() {
    this.become("hidden");
    this.abort?.abort();
  }

  /** Try at once, if the line is down. */
  retry() {
    if (this.state === "waiting" || this.state === "hidden") this.open();
  }

  async open() {
    clearTimeout(this.timer);
    this.abort?.abort();
    const abort = new AbortController();
    this.abort = abort;
    if (this.state !== "waiting") this.become("connecting");
    try {
      const headers = this.lastId ? { "last-event-id": this.lastId } : {};
      const answer = await fetch("/global/event?ids=true", { headers, signal: abort.signal, cache: "no-store" });
      if (answer.status === 401) return this.become("refused");
      if (!answer.ok || !answer.body) throw new Error(`status ${answer.status}`);
      await this.read(answer.body.getReader(), abort);
    } catch {
      // Reading failed, or the line went silent: both are answered by trying again.
    }
    if (this.abort === abort && this.state !== "hidden" && this.state !== "refused") this.later();
  }

  later() {
    const pause = WAIT_MS[Math.min(this.tries++, WAIT_MS.length - 1)] * (0.75 + Math.random() / 2);
    this.retryAt = Date.now() + pause;
    this.become("waiting");
    this.timer = setTimeout(() => this.open(), pause);
  }

  async read(reader, abort) {
    const decoder = new TextDecoder();
    let rest = "";
    for (;;) {
      const silent = setTimeout(() => abort.abort(), SILENT_MS);
      let chunk;
      try {
        chunk = await reader.read();
      } finally {
        clearTimeout(silent);
      }
      if (chunk.done) return;
      rest += decoder.decode(chunk.value, { stream: true });
      const frames = rest.split("\n\n");
      rest = frames.pop();
      for (const frame of frames) this.frame(frame);
    }
  }

  frame(frame) {
    let id = null;
    let data = "";
    for (const line of frame.split("\n")) {
      if (line.startsWith("id: ")) id = line.slice(4);
      else if (line.startsWith("data: ")) data += line.slice(6);
    }
    if (!data) return;
    const { payload, directory } = JSON.parse(data);
    if (payload.type === "server.connected") {
      const isGap = this.heard > 0 && payload.properties?.resumed !== true;
      this.tries = 0;
      this.heard += 1;
      this.become("live");
      if (id) this.lastId = id;
      if (isGap) this.tell("gap", {}, null);
      this.tell("connected", {}, null);
      return;
    }
    if (this.state !== "live") {
      this.tries = 0;
      this.become("live");
    }
    this.heard += 1;
    if (id) this.lastId = id;
    if (payload.type !== "server.heartbeat") this.tell(payload.type, payload.properties ?? {}, directory);
  }

  tell(type, properties, directory) {
    for (const listener of [...this.listeners]) listener(type, properties, directory);
  }
}
