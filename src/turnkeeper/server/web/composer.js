// The prompt box: what is typed stays here until the server has it. While the session runs, a prompt steers or waits.
import { html, useEffect, useRef, useState } from "./html.js";
import { at, get, messageId, post } from "./api.js";
import { Problem } from "./pieces.js";
import { bytes, dataSize, plural, spelt } from "./format.js";

const PASTE_CHARS = 2000;
const FILE_BYTES_MAX = 20 * 1024 * 1024;

const kept = {
  get: (key) => {
    try {
      return JSON.parse(localStorage.getItem(`turnkeeper.${key}`));
    } catch {
      return null;
    }
  },
  set: (key, value) => {
    try {
      if (value === null) localStorage.removeItem(`turnkeeper.${key}`);
      else localStorage.setItem(`turnkeeper.${key}`, JSON.stringify(value));
    } catch {
      // Without storage what is typed is lost with the tab, and nothing else.
    }
  },
};

export { kept };

/** A file as a prompt carries it. What is text by its content is sent as text, whatever type its name suggests. */
async function attachment(file) {
  const name = file.name || "pasted";
  if (file.size > FILE_BYTES_MAX) throw new Error(`${name} has ${bytes(file.size)}; attach at most ${bytes(FILE_BYTES_MAX)}.`);
  try {
    const mime = /^(image|audio|video|text)\/|\/pdf$/.test(file.type) ? file.type : (await isText(file)) ? "text/plain" : file.type || "application/octet-stream";
    return { filename: name, mime, url: await dataUrl(file), size: file.size };
  } catch {
    throw new Error(`${name} cannot be read. If it is a folder, name it with @ in the prompt.`);
  }
}

async function isText(file) {
  const raw = await file.arrayBuffer();
  try {
    return !new TextDecoder("utf-8", { fatal: true }).decode(raw).includes("\0");
  } catch {
    return false;
  }
}

function dataUrl(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}

/** What a message said, as a draft: its text, and the files that it carries itself. */
export function draftOf(parts) {
  return {
    text: parts.filter((part) => part.type === "text" && !part.synthetic).map((part) => part.text).join("\n\n"),
    files: parts.filter((part) => part.type === "file" && part.url.startsWith("data:")).map(({ filename, mime, url }) => ({ filename, mime, url, size: dataSize(url) })),
  };
}

/** Models and agents that can be chosen in a directory. */
function useChoices(directory) {
  const [choices, set] = useState({ models: [], agents: [] });
  useEffect(() => {
    let current = true;
    Promise.all([get(at("/config/providers", { directory })), get(at("/agent", { directory }))]).then(([{ providers }, agents]) => {
      if (!current) return;
      const models = providers.flatMap((provider) => Object.values(provider.models).map((model) => ({ value: `${provider.id}/${model.id}`, name: model.name ?? model.id })));
      set({ models, agents: agents.filter((agent) => agent.mode !== "subagent" && !agent.hidden).map((agent) => agent.name) });
    }, () => {});
    return () => {
      current = false;
    };
  }, [directory]);
  return choices;
}

export function Composer({ session, status, draft, onSent, onStop, handle }) {
  const key = `draft.${session.id}`;
  const [text, setText] = useState(() => kept.get(key)?.text ?? "");
  const [files, setFiles] = useState([]);
  const [reading, setReading] = useState(0);
  const [sending, setSending] = useState(null);
  const [error, setError] = useState(null);
  const [delivery, setDelivery] = useState(() => kept.get("delivery") ?? "queue");
  const [model, setModel] = useState(session.model ? `${session.model.providerID}/${session.model.id}` : "");
  const [agent, setAgent] = useState(session.agent ?? "");
  const [isOver, setOver] = useState(false);
  const choices = useChoices(session.directory);
  const box = useRef(null);
  const isBusy = status?.type !== "idle";
  const lent = useRef(null); // The draft that was put here last.
  const held = useRef(null);
  held.current = { text, files };
  useEffect(() => handle?.({ focus: () => box.current?.focus(), take: () => take(null) }));
  useEffect(() => { if (draft) { take(draft); box.current?.focus(); } }, [draft]);
  useEffect(() => {
    const element = box.current;
    element.style.height = "auto";
    element.style.height = `${Math.min(element.scrollHeight + 2, window.innerHeight * 0.3)}px`;
  }, [text]);

  const change = (some) => {
    setText(some);
    kept.set(key, some ? { text: some } : null);
  };

  /** With other files it is another prompt, which is sent under an id of its own. */
  const changeFiles = (some) => {
    setFiles(some);
    const { text: said } = kept.get(key) ?? {};
    kept.set(key, said ? { text: said } : null);
  };

  /** Put a draft behind what is typed, in place of the last one if that was not changed. */
  const take = (some) => {
    const { text: before, files: own } = lent.current ?? { files: [] };
    const typed = text === before ? "" : text;
    change([typed, some?.text].filter(Boolean).join("\n\n"));
    changeFiles((all) => [...all.filter((one) => !own.includes(one)), ...(some?.files ?? [])]);
    lent.current = some;
  };

  const add = async (some) => {
    setError(null);
    setReading((count) => count + 1);
    const found = await Promise.allSettled(some.map(attachment));
    setReading((count) => count - 1);
    changeFiles((before) => [...before, ...found.flatMap((one) => one.value ?? [])]);
    const refused = found.flatMap((one) => one.reason?.message ?? []);
    if (refused.length) setError({ message: refused.join(" ") });
  };

  const paste = (event) => {
    const { files: some, types } = event.clipboardData;
    const typed = event.clipboardData.getData("text/plain");
    // An office program puts a picture of the text next to it.
    const isPicturedText = typed && types.includes("text/html");
    if (some.length && !isPicturedText) {
      event.preventDefault();
      add([...some]);
    } else if (typed.length > PASTE_CHARS) {
      event.preventDefault();
      add([new File([typed], `pasted ${plural(typed.replace(/\n$/, "").split("\n").length, "line")}.txt`, { type: "text/plain" })]);
    }
  };

  useEffect(() => {
    const hasFiles = (event) => event.dataTransfer?.types.includes("Files") && !document.querySelector("dialog[open]");
    const over = (event) => { if (hasFiles(event)) { event.preventDefault(); setOver(true); } };
    const left = (event) => { if (!event.relatedTarget) setOver(false); };
    const dropped = (event) => { if (hasFiles(event)) { event.preventDefault(); setOver(false); add([...event.dataTransfer.files]); } };
    window.addEventListener("dragover", over);
    window.addEventListener("dragleave", left);
    window.addEventListener("drop", dropped);
    return () => {
      window.removeEventListener("dragover", over);
      window.removeEventListener("dragleave", left);
      window.removeEventListener("drop", dropped);
    };
  }, [key]);

  const send = async () => {
    const said = text.trim();
    if ((!said && !files.length) || sending || reading) return;
    const tried = kept.get(key)?.id ? kept.get(key) : null;
    const id = tried?.id ?? messageId();
    // A queued prompt waits after a refused call; one that is typed while nothing runs is to be answered.
    const delivered = tried?.delivered ?? (isBusy ? delivery : "steer");
    kept.set(key, { text, id, delivered });
    setSending(id);
    setError(null);
    const [providerID, ...rest] = model.split("/");
    const body = {
      messageID: id,
      parts: [...(said ? [{ type: "text", text: said, mentions: true }] : []), ...files.map(({ filename, mime, url }) => ({ type: "file", filename, mime, url }))],
      delivery: delivered,
      ...(model ? { model: { providerID, modelID: rest.join("/") } } : {}),
      ...(agent ? { agent } : {}),
    };
    try {
      await post(`/session/${session.id}/prompt_async`, body);
      // What was typed and attached since then is no part of what was sent.
      const { text: typed, files: attached } = held.current;
      change(typed.startsWith(text) ? typed.slice(text.length).trimStart() : typed);
      setFiles(attached.filter((one) => !files.includes(one)));
      onSent?.(id);
    } catch (problem) {
      // Under its id it can be sent again, and is admitted once. A refused one needs a new id.
      if (problem.status) kept.set(key, { text: held.current.text });
      setError(problem.status ? problem : { status: 0, message: "Not sent yet: the server cannot be reached. Your text is kept; send it again." });
    }
    setSending(null);
  };

  const pressed = (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing && !matchMedia("(pointer: coarse)").matches) {
      event.preventDefault();
      send();
    } else if (event.key === "Escape") box.current.blur();
  };

  return html`<form class=${isOver ? "composer composer-over" : "composer"} onSubmit=${(event) => { event.preventDefault(); send(); }}>
    ${error && html`<${Problem} error=${error} />`}
    ${files.length > 0 && html`<ul class="attached">${files.map((file, nth) => html`<li key=${nth}>
      ${/^image\/(png|jpe?g|gif|webp)$/.test(file.mime) && html`<img src=${file.url} alt="" />`}<span>${spelt(file.filename)} <span class="dim">${bytes(file.size)}</span></span>
      <button type="button" class="link" aria-label=${`Remove ${file.filename}`} onClick=${() => changeFiles((before) => before.filter((_, place) => place !== nth))}>Remove</button></li>`)}</ul>`}
    <textarea ref=${box} rows="1" value=${text} placeholder="Write a prompt. @ names a file." aria-label="Prompt"
      onInput=${(event) => change(event.target.value)} onKeyDown=${pressed} onPaste=${paste}></textarea>
    <div class="composer-line">
      ${isBusy && html`<select aria-label="When the prompt is delivered" value=${delivery} onChange=${(event) => { setDelivery(event.target.value); kept.set("delivery", event.target.value); }}>
        <option value="queue">when it rests</option><option value="steer">at the next turn</option></select>`}
      ${choices.models.length > 0 && html`<select aria-label="Model" value=${model} onChange=${(event) => setModel(event.target.value)}>
        <option value="">default model</option>${model && !choices.models.some((one) => one.value === model) && html`<option value=${model}>${model}</option>`}
        ${choices.models.map((one) => html`<option value=${one.value} key=${one.value}>${one.name}</option>`)}</select>`}
      ${choices.agents.length > 1 && html`<select aria-label="Agent" value=${agent} onChange=${(event) => setAgent(event.target.value)}>
        <option value="">default agent</option>${agent && !choices.agents.includes(agent) && html`<option value=${agent}>${agent}</option>`}
        ${choices.agents.map((one) => html`<option value=${one} key=${one}>${one}</option>`)}</select>`}
      <label class="attach"><input type="file" multiple aria-label="Attach files" onChange=${(event) => { add([...event.target.files]); event.target.value = ""; }} /><span aria-hidden="true">Attach</span></label>
      <span class="space"></span>
      ${isBusy && html`<button type="button" class="stop" onClick=${onStop}>Stop</button>`}
      <button class="primary" disabled=${Boolean(sending || reading) || (!text.trim() && !files.length)}>${sending ? "Sending" : reading ? "Reading" : isBusy ? (delivery === "steer" ? "Steer" : "Queue") : "Send"}</button>
    </div>
  </form>`;
}

/** Prompts that the server has accepted and not begun. */
export function Inbox({ inbox, takeBack }) {
  if (!inbox.length) return null;
  return html`<ul class="inbox" aria-label="Prompts that wait">
    ${inbox.map(({ message, delivery }) => {
      const text = message.parts.filter((part) => part.type === "text" && !part.synthetic).map((part) => part.text).join(" ");
      return html`<li key=${message.info.id}><span class="tag">${delivery === "steer" ? "next turn" : "queued"}, safe</span>
        <span class="inbox-text">${spelt(text)}</span><button class="link" onClick=${() => takeBack(message)}>Take back</button></li>`;
    })}
  </ul>`;
}
