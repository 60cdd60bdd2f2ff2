// The prompt box: what is typed stays here until the server has it. While the session runs, a prompt steers or waits.
import { html, useEffect, useRef, useState } from "./html.js";
import { at, get, messageId, post } from "./api.js";
import { Problem } from "./pieces.js";
import { bytes, plural, spelt } from "./format.js";

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

function read(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve({ filename: file.name || "pasted", mime: file.type || "text/plain", url: reader.result, size: file.size });
    reader.onerror = () => reject(new Error(`${file.name} cannot be read.`));
    reader.readAsDataURL(file);
  });
}

function pasted(text) {
  const raw = new TextEncoder().encode(text);
  let binary = "";
  for (const one of raw) binary += String.fromCharCode(one);
  return { filename: `pasted ${plural(text.split("\n").length, "line")}.txt`, mime: "text/plain", url: `data:text/plain;base64,${btoa(binary)}`, size: raw.length };
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
  const [sending, setSending] = useState(null);
  const [error, setError] = useState(null);
  const [delivery, setDelivery] = useState(() => kept.get("delivery") ?? "queue");
  const [model, setModel] = useState(session.model ? `${session.model.providerID}/${session.model.id}` : "");
  const [agent, setAgent] = useState(session.agent ?? "");
  const [isOver, setOver] = useState(false);
  const choices = useChoices(session.directory);
  const box = useRef(null);
  const isBusy = status?.type !== "idle";
  useEffect(() => handle?.({ focus: () => box.current?.focus(), forget: (some) => setText((before) => (before === some ? "" : before)) }), []);
  useEffect(() => { if (draft) { setText(draft.text); setFiles(draft.files ?? []); box.current?.focus(); } }, [draft]);
  useEffect(() => {
    const element = box.current;
    element.style.height = "auto";
    element.style.height = `${Math.min(element.scrollHeight + 2, window.innerHeight * 0.3)}px`;
  }, [text]);

  const change = (some) => {
    setText(some);
    kept.set(key, some ? { text: some } : null);
  };

  const add = async (some) => {
    setError(null);
    for (const file of some) {
      if (file.size > FILE_BYTES_MAX) setError({ message: `${file.name} has ${bytes(file.size)}; attach at most ${bytes(FILE_BYTES_MAX)}.` });
      else {
        try {
          const one = await read(file);
          setFiles((before) => [...before, one]);
        } catch (problem) {
          setError(problem);
        }
      }
    }
  };

  const paste = (event) => {
    const some = [...(event.clipboardData?.files ?? [])];
    const typed = event.clipboardData?.getData("text/plain") ?? "";
    if (some.length) {
      event.preventDefault();
      add(some);
    } else if (typed.length > PASTE_CHARS) {
      event.preventDefault();
      setFiles((before) => [...before, pasted(typed)]);
    }
  };

  const send = async () => {
    const said = text.trim();
    if ((!said && !files.length) || sending) return;
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
      kept.set(key, null);
      setText("");
      setFiles([]);
      onSent?.(id);
    } catch (problem) {
      // Under its id it can be sent again, and is admitted once. A refused one needs a new id.
      if (problem.status) kept.set(key, { text });
      setError(problem.status ? problem : { status: 0, message: "Not sent yet: the server cannot be reached. Your text is kept; send it again." });
    }
    setSending(null);
  };

  const pressed = (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing && !matchMedia("(pointer: coarse)").matches) {
      event.preventDefault();
      send();
    } else if (event.key === "." && event.ctrlKey && isBusy) onStop();
    else if (event.key === "Escape") box.current.blur();
  };

  return html`<form class=${isOver ? "composer composer-over" : "composer"} onSubmit=${(event) => { event.preventDefault(); send(); }}
    onDragOver=${(event) => { event.preventDefault(); setOver(true); }} onDragLeave=${() => setOver(false)}
    onDrop=${(event) => { event.preventDefault(); setOver(false); add([...event.dataTransfer.files]); }}>
    ${error && html`<${Problem} error=${error} />`}
    ${files.length > 0 && html`<ul class="attached">${files.map((file, nth) => html`<li key=${nth}>
      ${/^image\/(png|jpe?g|gif|webp)$/.test(file.mime) && html`<img src=${file.url} alt="" />`}<span>${spelt(file.filename)} <span class="dim">${bytes(file.size)}</span></span>
      <button type="button" class="link" aria-label=${`Remove ${file.filename}`} onClick=${() => setFiles((before) => before.filter((_, place) => place !== nth))}>Remove</button></li>`)}</ul>`}
    <textarea ref=${box} rows="1" value=${text} placeholder="Write a prompt. @ names a file." aria-label="Prompt"
      onInput=${(event) => change(event.target.value)} onKeyDown=${pressed} onPaste=${paste}></textarea>
    <div class="composer-line">
      ${isBusy && html`<select aria-label="When the prompt is delivered" value=${delivery} onChange=${(event) => { setDelivery(event.target.value); kept.set("delivery", event.target.value); }}>
        <option value="queue">when it rests</option><option value="steer">at the next turn</option></select>`}
      ${choices.models.length > 0 && html`<select aria-label="Model" value=${model} onChange=${(event) => setModel(event.target.value)}>
        <option value="">default model</option>${model && !choices.models.some((one) => one.value === model) && html`<option value=${model}>${model}</option>`}
        ${choices.models.map((one) => html`<option value=${one.value} key=${one.value}>${one.name}</option>`)}</select>`}
      ${choices.agents.length > 1 && html`<select aria-label="Agent" value=${agent} onChange=${(event) => setAgent(event.target.value)}>
        <option value="">default agent</option>${choices.agents.map((one) => html`<option value=${one} key=${one}>${one}</option>`)}</select>`}
      <label class="attach"><input type="file" multiple aria-label="Attach files" onChange=${(event) => { add([...event.target.files]); event.target.value = ""; }} /><span aria-hidden="true">Attach</span></label>
      <span class="space"></span>
      ${isBusy && html`<button type="button" class="stop" onClick=${onStop}>Stop</button>`}
      <button class="primary" disabled=${Boolean(sending) || (!text.trim() && !files.length)}>${sending ? "Sending" : isBusy ? (delivery === "steer" ? "Steer" : "Queue") : "Send"}</button>
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
