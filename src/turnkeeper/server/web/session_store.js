// What the page knows of one session, live or as it was after an event: outline, messages, state, asks.
import { at, get } from "./api.js";

const PAGE = 40;
const KEPT_MAX = 900;
const AGAIN_MS = 60;

export class SessionStore {
  constructor(id, connection, seq = null) {
    this.id = id;
    this.seq = seq; // The event that is looked at; null: now.
    this.rows = [];
    this.bodies = new Map(); // By message: {seq, message: {info, parts}, held}
    this.state = null;
    this.error = null;
    this.isRead = false;
    this.watchers = new Set();
    this.asked = new Set();
    this.unplaced = new Set(); // Prompts that were heard of, and may belong before the next answer.
    this.version = 0;
    this.stop = seq === null ? connection.listen((type, said) => this.heard(type, said)) : () => {};
    this.connection = connection;
    if (seq !== null || connection.state === "live") this.read();
  }

  close() {
    this.stop();
    clearTimeout(this.timer);
    clearInterval(this.poll);
    this.isClosed = true;
  }

  subscribe(watcher) {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  }

  /** Tell the watchers, once for each frame that is drawn. */
  changed() {
    this.version += 1;
    if (this.isTelling || this.isClosed) return;
    this.isTelling = true;
    const tell = () => {
      this.isTelling = false;
      for (const watcher of [...this.watchers]) watcher();
    };
    if (document.hidden) setTimeout(tell, 100);
    else requestAnimationFrame(tell);
  }

  path(name, query = {}) {
    return at(`/tk/session/${this.id}/${name}`, { at: this.seq, ...query });
  }

  /** Read everything anew: the newest page first, so that there is something to see, then the outline. */
  async read() {
    try {
      const [state, page] = await Promise.all([get(this.path("state")), get(this.path("messages", { limit: PAGE }))]);
      if (this.isClosed) return;
      this.state = state;
      this.take(page.items);
      if (!this.isRead) this.rows = page.items.map(rowOf);
      this.isRead = true;
      this.error = null;
      this.changed();
      const outline = await get(this.path("outline"));
      if (this.isClosed) return;
      this.place(outline.rows, true);
    } catch (error) {
      this.error = error;
    }
    this.changed();
  }

  /** Put rows where they belong; all of them, or only those after the last known one. */
  place(rows, isWhole) {
    const before = new Map(this.rows.map((row) => [row.id, row]));
    // Only a whole outline knows what a summary stands for.
    if (!isWhole) rows = rows.map((row) => ({ ...row, hidden: before.get(row.id)?.hidden }));
    const known = new Set(rows.map((row) => row.id));
    for (const id of known) this.unplaced.delete(id);
    const first = rows.length ? rows[0].seq : Infinity;
    const kept = isWhole
      ? this.rows.filter((row) => row.isNew && !known.has(row.id) && row.bornAt > Date.now() - 5000)
      : this.rows.filter((row) => !known.has(row.id) && (row.seq < first || row.isNew));
    this.rows = isWhole ? [...rows, ...kept] : [...kept, ...rows].sort((one, other) => one.seq - other.seq);
    this.changed();
  }

  take(items) {
    for (const item of items) {
      const known = this.bodies.get(item.message.info.id);
      this.bodies.set(item.message.info.id, known ? { ...item, message: longer(known.message, item.message) } : item);
    }
  }

  /** See to it that the messages of these rows are here. */
  need(first, last) {
    for (let index = Math.max(0, first); index <= last && index < this.rows.length; index += 1) {
      const row = this.rows[index];
      if (this.bodies.has(row.id) || this.asked.has(row.id) || row.isNew) continue;
      const some = this.rows.slice(index, index + PAGE);
      for (const one of some) this.asked.add(one.id);
      this.fetch(some);
    }
    if (this.bodies.size > KEPT_MAX) this.forget(first, last);
  }

  async fetch(rows) {
    try {
      const page = await get(this.path("messages", { after: Math.max(1, rows[0].seq - 1), limit: rows.length + (rows[0].seq <= 1 ? 1 : 0) }));
      this.take(page.items);
    } catch (error) {
      this.error = error;
    }
    for (const row of rows) this.asked.delete(row.id);
    this.changed();
  }

  forget(first, last) {
    const near = new Set(this.rows.slice(Math.max(0, first - 200), last + 200).map((row) => row.id));
    for (const id of [...this.bodies.keys()]) {
      if (this.bodies.size <= KEPT_MAX / 2) return;
      if (!near.has(id)) this.bodies.delete(id);
    }
  }

  /** Read what is small anew, and the rows behind the last that is known for certain; soon, and once for many events. */
  again() {
    clearTimeout(this.timer);
    this.timer = setTimeout(async () => {
      const last = this.rows.findLast((row) => !row.isNew);
      try {
        const [state, outline] = await Promise.all([
          get(this.path("state")),
          last ? get(this.path("outline", { after: Math.max(1, last.seq - 1) })) : get(this.path("outline")),
        ]);
        if (this.isClosed) return;
        this.state = state;
        this.place(outline.rows, !last);
        const gone = new Set(state.inbox.map((one) => one.message.info.id));
        for (const id of gone) this.unplaced.delete(id);
        this.rows = this.rows.filter((row) => !gone.has(row.id));
      } catch (error) {
        this.error = error;
      }
      this.changed();
    }, AGAIN_MS);
  }

  heard(type, said) {
    if (type === "gap" || type === "connected") {
      if (type === "connected" && this.isRead) return;
      this.isRead = false;
      this.bodies = new Map();
      this.read();
      return;
    }
    if (said.sessionID !== this.id && said.info?.sessionID !== this.id && said.info?.id !== this.id) {
      // An ask of a Child Session is answered here, too.
      if (/^(permission|question)\./.test(type)) this.again();
      return;
    }
    HEARD[type]?.(this, said);
    this.changed();
  }

  message(id) {
    return this.bodies.get(id)?.message;
  }

  put(message) {
    const before = this.bodies.get(message.info.id);
    this.bodies.set(message.info.id, { seq: before?.seq ?? 0, held: before?.held ?? {}, message });
  }

  waits(id) {
    return this.state?.inbox.some((one) => one.message.info.id === id) ?? false;
  }
}

const HEARD = {
  "session.updated": (store, { info }) => {
    if (store.state && info.id === store.id) store.state = { ...store.state, session: info };
  },
  "session.status": (store, { status }) => {
    if (store.state) store.state = { ...store.state, status };
    store.again();
  },
  "session.deleted": (store, { info }) => {
    if (info.id === store.id) store.isRemoved = true;
  },
  "session.compacted": (store) => store.read(),
  "session.error": (store) => store.again(),
  "todo.updated": (store, { todos }) => {
    if (store.state) store.state = { ...store.state, todos };
  },
  "permission.asked": (store) => store.again(),
  "permission.replied": (store) => store.again(),
  "question.asked": (store) => store.again(),
  "question.replied": (store) => store.again(),
  "question.rejected": (store) => store.again(),
  "message.updated": (store, { info }) => {
    const known = store.message(info.id);
    store.put({ info, parts: known?.parts ?? [] });
    const row = store.rows.find((one) => one.id === info.id);
    if (row) {
      if (info.role === "assistant" && info.time.completed && row.isNew) store.again();
      return;
    }
    // A prompt may wait in the inbox, which only the server can tell. A turn is shown at once, but not before its prompt.
    if (info.role === "user") store.unplaced.add(info.id);
    if (info.role === "assistant" && !store.unplaced.size && store.rows.some((one) => one.id === info.parentID)) {
      const last = store.rows.at(-1);
      store.rows = [...store.rows, { ...rowOf({ seq: (last?.seq ?? 0) + 0.001, message: { info, parts: [] } }), isNew: true, bornAt: Date.now() }];
    }
    store.again();
  },
  "message.removed": (store, { messageID }) => {
    store.rows = store.rows.filter((row) => row.id !== messageID);
    store.bodies.delete(messageID);
    store.unplaced.delete(messageID);
    store.again();
  },
  "message.part.updated": (store, { part }) => {
    const known = store.message(part.messageID);
    if (!known) return;
    const place = known.parts.findIndex((one) => one.id === part.id);
    const parts = place < 0 ? [...known.parts, part] : known.parts.with(place, part);
    store.put({ info: known.info, parts });
  },
  "message.part.delta": (store, { messageID, partID, field, delta, offset }) => {
    const known = store.message(messageID);
    const place = known ? known.parts.findIndex((one) => one.id === partID) : -1;
    if (place < 0) return;
    const part = known.parts[place];
    const text = joined(part[field] ?? "", delta, offset);
    if (text === null) return; // Something is missing; the whole part comes when it is complete.
    store.put({ info: known.info, parts: known.parts.with(place, { ...part, [field]: text }) });
  },
  "message.part.removed": (store, { messageID, partID }) => {
    const known = store.message(messageID);
    if (known) store.put({ info: known.info, parts: known.parts.filter((one) => one.id !== partID) });
  },
};

/** Text with a delta at an offset in characters: appended, cut where it overlaps, or null if there is a hole. */
export function joined(text, delta, offset) {
  if (offset === undefined || offset === null) return text + delta;
  const length = characters(text);
  if (offset > length) return null;
  if (offset === length) return text + delta;
  const known = [...text];
  return known.slice(0, offset).join("") + delta + known.slice(offset + characters(delta)).join("");
}

function characters(text) {
  let total = text.length;
  // The server counts characters, a string of JavaScript counts half of a surrogate pair as one.
  for (const _ of text.matchAll(/[\ud800-\udbff][\udc00-\udfff]/g)) total -= 1;
  return total;
}

/** Of two readings of a message: the later one, but with the text of parts that has already come further. */
function longer(known, read) {
  const parts = read.parts.map((part) => {
    const other = known.parts.find((one) => one.id === part.id);
    const isOpen = part.type === "text" || part.type === "reasoning" ? !part.time?.end : false;
    return isOpen && other?.text?.length > part.text.length ? other : part;
  });
  return { info: read.info, parts };
}

export function rowOf({ seq, message }) {
  const { info, parts } = message;
  const texts = parts.filter((part) => part.type === "text");
  const calls = parts.filter((part) => part.type === "tool");
  const isMark = parts.some((part) => part.type === "compaction");
  return {
    id: info.id,
    seq,
    role: info.role === "user" ? (isMark ? "compaction" : "user") : info.summary === true ? "summary" : info.role,
    time: info.time.created,
    chars: texts.reduce((sum, part) => sum + part.text.length, 0),
    lines: texts.reduce((sum, part) => sum + part.text.split("\n").length, 0) + calls.length,
    calls: calls.length,
    failed: calls.filter((part) => part.state.status === "error").length,
    title: (texts.find((part) => !part.synthetic)?.text ?? "").trim().split("\n", 1)[0].slice(0, 100),
  };
}
