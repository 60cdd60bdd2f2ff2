// A tool call: one line that names its object, and below it input, output and changes.
import { html, memo, useState } from "./html.js";
import { Diff, counts } from "./diff.js";
import { Output } from "./output.js";
import { Code } from "./markdown.js";
import { duration, plural, shortPath, spelt, whole } from "./format.js";
import { Copy, File, Ticking } from "./pieces.js";

const GLYPHS = { bash: "$", read: "=", write: "~", edit: "~", multiedit: "~", apply_patch: "~", grep: "/", glob: "*", list: "=", webfetch: "@", task: "o", todowrite: "+", question: "?", skill: "#" };

/** What a call is about: its command, file, pattern or title. */
export function subject({ tool, state }) {
  const input = state.input ?? {};
  if (tool === "bash") return String(input.command ?? state.title ?? "");
  if (tool === "grep" || tool === "glob") return `${input.pattern ?? ""}${input.path ? ` in ${shortPath(input.path)}` : ""}`;
  if (/^(read|write|edit|multiedit)$/.test(tool)) return String(state.title || shortPath(input.filePath ?? input.path ?? ""));
  const asked = Array.isArray(input.questions) ? input.questions.map((one) => one?.question).filter(Boolean).join(" ") : "";
  if (tool === "question" && asked) return asked;
  if (state.title && state.title !== tool) return String(state.title);
  const values = Object.values(input);
  if (values.length === 1) return typeof values[0] === "string" ? values[0] : JSON.stringify(values[0]);
  return values.length ? JSON.stringify(input) : "";
}

function result({ tool, state }) {
  const found = state.metadata ?? {};
  if (typeof found.diff === "string" && found.diff) {
    const { added, removed } = counts(found.diff);
    return html`<span class="plus">+${added}</span> <span class="minus">−${removed}</span>`;
  }
  if (tool === "question" && Array.isArray(found.answers)) return html`<b>${spelt(found.answers.map((some) => some.join(", ") || "no answer").join("; ")).slice(0, 200)}</b>`;
  if (tool === "bash" && typeof found.exit === "number") return found.exit ? html`<span class="bad">exit ${found.exit}</span>` : "exit 0";
  if (typeof found.matches === "number") return found.matches === 1 ? "1 match" : `${whole(found.matches)} matches`;
  if (typeof found.count === "number") return plural(found.count, "file");
  return "";
}

/** What the server records of a call that the user refused begins so. */
const REFUSED = "The user rejected this call";

function word(state, isAsked) {
  if (isAsked) return "waiting for you";
  if (state.status === "error" && String(state.error).startsWith(REFUSED)) return "refused";
  if (state.status === "error") return state.metadata?.interrupted ? "outcome unknown" : "failed";
  if (state.status === "running") return "running";
  return state.status === "pending" ? "waits" : "";
}

function opensAlone({ tool, state }) {
  if (state.status === "error") return true;
  if (state.status === "running") return tool === "bash" || tool === "task";
  const found = state.metadata ?? {};
  if (tool === "bash") return typeof found.exit === "number" && found.exit !== 0;
  if (typeof found.diff === "string") return found.diff.split("\n").length <= 26;
  return false;
}

export const Call = memo(function Call({ part, held, isAsked, tools }) {
  const [choice, choose] = useState(null);
  const { state } = part;
  const isOpen = choice ?? (tools.density === "everything" || opensAlone(part));
  const took = state.time?.end ? duration(state.time.end - state.time.start) : "";
  const said = word(state, isAsked);
  return html`<div class=${`call call-${isAsked ? "asked" : state.status}`} id=${`p-${part.id}`}>
    <button class="call-line" aria-expanded=${isOpen ? "true" : "false"} onClick=${() => choose(!isOpen)}>
      <span class="call-glyph" aria-hidden="true">${state.status === "error" ? "×" : GLYPHS[part.tool] ?? "·"}</span>
      <span class="call-tool">${part.tool}</span>
      <span class="call-subject">${spelt(subject(part)).split("\n", 1)[0].slice(0, 300)}</span>
      <span class="call-result">${result(part)}</span>
      ${said && html`<span class=${state.status === "error" ? "bad" : "call-word"}>${said}</span>`}
      <span class="call-time">${isAsked ? "" : state.status === "running" ? html`<${Ticking} since=${state.time.start} until=${tools.until} />` : took}</span>
    </button>
    ${isOpen && html`<${CallBody} part=${part} held=${held} tools=${tools} />`}
  </div>`;
});

function CallBody({ part, held, tools }) {
  const { state, tool } = part;
  const diff = state.metadata?.diff;
  const running = state.status === "running" ? state.metadata?.output : null;
  const child = state.metadata?.sessionId ?? state.metadata?.sessionID;
  return html`<div class="call-body">
    ${tool === "bash" ? html`<${Code} text=${spelt(state.input?.command ?? "")} language="bash" />` : !diff && html`<${Input} input=${state.input} />`}
    ${held && html`<p class="note">
      ${held.state === "pruned" ? "The model is not shown this output any more." : "The model was shown the beginning and the end of this output."} ${" "}
      ${tools.recall && html`<button class="link" onClick=${() => tools.recall(held.handle)}>Show all ${plural(held.chars, "character")}</button>`}
    </p>`}
    ${diff && html`<${Diff} patch=${diff} label=${`Changes of ${subject(part)}`} />`}
    ${state.status === "error" && html`<${Output} text=${String(state.error ?? "")} label="Error" />`}
    ${typeof running === "string" && running && html`<${Output} text=${running} label="Output so far" />`}
    ${state.status === "completed" && state.output && !diff && html`<${Output} text=${state.output} label=${`Output of ${tool}`} />`}
    ${(state.attachments ?? []).map((file) => html`<${File} file=${file} key=${file.id} />`)}
    <p class="call-foot">
      ${child && tools.openSession && html`<button class="link" onClick=${() => tools.openSession(child)}>Open the child session</button>`}
      ${diff && tools.blame && html`<button class="link" onClick=${() => tools.blame(state.metadata.filepath ?? state.input?.filePath)}>Blame</button>`}
      <${Copy} text=${diff || state.output || String(state.input?.command ?? JSON.stringify(state.input ?? {}, null, 2))} what=${diff ? "patch" : "output"} />
    </p>
  </div>`;
}

function Input({ input }) {
  const entries = Object.entries(input ?? {});
  if (!entries.length) return null;
  return html`<dl class="input">
    ${entries.slice(0, 30).map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${spelt(typeof value === "string" ? value : JSON.stringify(value)).slice(0, 4000)}</dd></div>`)}
  </dl>`;
}
