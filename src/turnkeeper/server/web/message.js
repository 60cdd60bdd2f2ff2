// A message and its parts. It knows nothing of the server: data and actions are handed in, so that a read-only page can
// use it as it is. `tools` may have: recall, blame, undo, fork, openSession, link, density, until (the moment that is shown).
import { html, memo, useState } from "./html.js";
import { Call } from "./call.js";
import { Markdown } from "./markdown.js";
import { Copy, File, Ticking } from "./pieces.js";
import { calm, count, duration, moment, money, plural, spelt, time } from "./format.js";

const LONG_CHARS = 12_000;
/** The parts of an answer that a reader sees. */
const SEEN = ["text", "reasoning", "tool", "file"];

/** The name of a message for those who do not see it. */
export function spoken({ info, parts }) {
  if (info.role === "user") return `You, ${time(info.time.created)}`;
  if (info.role === "system") return "Change of the system context";
  const calls = parts.filter((part) => part.type === "tool");
  const failed = calls.filter((part) => part.state.status === "error").length;
  return `Assistant, ${time(info.time.created)}${calls.length ? `, ${plural(calls.length, "call")}` : ""}${failed ? `, ${failed} failed` : ""}${info.error ? ", failed" : ""}`;
}

/** `asked` are the ids of the calls that wait for an answer of the user, with commas between them. */
export const Message = memo(function Message({ message, held, seq, isLast, isHidden, isAside, asked, tools, position, size }) {
  const { info, parts } = message;
  const isMark = parts.some((part) => part.type === "compaction");
  const names = ["message", `message-${isMark ? "system" : info.summary === true ? "summary" : info.role}`];
  if (isHidden) names.push("message-hidden");
  if (isAside) names.push("message-aside");
  return html`<article class=${names.join(" ")} id=${`m-${info.id}`} tabindex="-1" data-id=${info.id} aria-label=${spoken(message)}
    aria-posinset=${position} aria-setsize=${size}>
    ${info.role === "user" && html`<${Prompt} info=${info} parts=${parts} seq=${seq} tools=${tools} />`}
    ${info.role === "assistant" && html`<${Answer} info=${info} parts=${parts} held=${held} seq=${seq} isLast=${isLast} asked=${asked ? asked.split(",") : []} tools=${tools} />`}
    ${info.role === "system" && html`<${News} info=${info} />`}
  </article>`;
});

function Prompt({ info, parts, seq, tools }) {
  const mark = parts.find((part) => part.type === "compaction");
  if (mark) return html`<p class="mark"><span aria-hidden="true">◇</span> Compaction${mark.auto ? ", because the window was full" : ""}: a summary stands for what came before.</p>`;
  const texts = parts.filter((part) => part.type === "text" && !part.synthetic);
  const other = parts.filter((part) => part.type === "text" && part.synthetic);
  const files = parts.filter((part) => part.type === "file");
  const text = texts.map((part) => part.text).join("\n\n");
  return html`<header class="message-head">
      <b>You</b><time title=${moment(info.time.created)}>${time(info.time.created)}</time>
      <span class="message-actions">
        ${tools.undo && html`<button class="link" onClick=${() => tools.undo(info.id)}>Undo from here</button>`}
        ${tools.fork && html`<button class="link" onClick=${() => tools.fork(info.id)}>Fork before</button>`}
        <${Copy} text=${text} what="prompt" />
        ${tools.link && html`<button class="link" onClick=${() => tools.link(info.id)}>Link</button>`}
        ${seq > 0 && html`<span class="dim seq">${Math.floor(seq)}</span>`}
      </span>
    </header>
    <${Long} text=${text} />
    ${files.map((file) => html`<${File} file=${file} key=${file.id} />`)}
    ${parts.filter((part) => part.type === "agent").map((part) => html`<p class="file" key=${part.id}>agent ${spelt(part.name)}</p>`)}
    ${parts.filter((part) => part.type === "subtask").map((part) => html`<p class="file" key=${part.id}>task for ${spelt(part.agent)}: ${spelt(part.description)}</p>`)}
    ${other.length > 0 && html`<details class="aside"><summary>${plural(other.length, "note")} from Turnkeeper to the model</summary>${other.map((part) => html`<pre tabindex="0" key=${part.id}>${calm(part.text.slice(0, LONG_CHARS))}</pre>`)}</details>`}`;
}

/** Text of a prompt as it was typed. A long one is folded. */
function Long({ text }) {
  const [isWhole, setWhole] = useState(text.length <= LONG_CHARS);
  if (!text) return null;
  return html`<div class="typed">${calm(isWhole ? text : text.slice(0, LONG_CHARS))}</div>
    ${!isWhole && html`<button class="quiet" onClick=${() => setWhole(true)}>Show ${plural(text.length - LONG_CHARS, "more character")}</button>`}`;
}

function Answer({ info, parts, held, seq, isLast, asked, tools }) {
  const text = parts.filter((part) => part.type === "text").map((part) => part.text).join("\n\n");
  const tokens = info.tokens ?? {};
  const isOpen = !info.time.completed;
  const read = tokens.cache?.read ?? 0;
  const sent = (tokens.input ?? 0) + read + (tokens.cache?.write ?? 0);
  return html`<header class="message-head">
      <b>${info.summary === true ? "Summary" : "Assistant"}</b>
      <time title=${moment(info.time.created)}>${time(info.time.created)}</time>
      <span class="dim">${spelt(info.modelID)}${info.agent && info.agent !== "build" ? `, ${spelt(info.agent)}` : ""}</span>
      <span class="message-figures">
        ${isOpen ? isLast && !asked.length && html`<span class="running">working <${Ticking} since=${info.time.created} until=${tools.until} /></span>` : html`<span>${duration(info.time.completed - info.time.created)}</span>`}
        ${sent > 0 && html`<span title="Tokens sent and received">${count(sent)} in, ${count(tokens.output ?? 0)} out</span>`}
        ${read > 0 && html`<span title="Tokens that the provider read from its cache">${Math.round((read / sent) * 100)}% cached</span>`}
        ${info.cost > 0 && html`<span>${money(info.cost)}</span>`}
      </span>
      <span class="message-actions">
        ${text && html`<${Copy} text=${text} what="answer" />`}
        ${tools.link && html`<button class="link" onClick=${() => tools.link(info.id)}>Link</button>`}
        ${seq > 0 && html`<span class="dim seq">${Math.floor(seq)}</span>`}
      </span>
    </header>
    ${parts.map((part) => html`<${Part} part=${part} held=${held?.[part.id]} isOpen=${isOpen} isAsked=${asked.includes(part.callID)} tools=${tools} key=${part.id} />`)}
    ${info.error ? html`<${Failure} error=${info.error} />` : !isOpen && html`<${Lack} info=${info} parts=${parts} />`}`;
}

const Part = memo(function Part({ part, held, isOpen, isAsked, tools }) {
  if (part.type === "text") return part.text.trim() ? html`<${Markdown} text=${part.text} live=${isOpen && !part.time?.end} />` : null;
  if (part.type === "reasoning") return html`<${Thought} part=${part} tools=${tools} isOpen=${isOpen} />`;
  if (part.type === "tool") return html`<${Call} part=${part} held=${held} isAsked=${isAsked} tools=${tools} />`;
  if (part.type === "file") return html`<${File} file=${part} />`;
  if (part.type === "retry") return html`<p class="mark mark-warn"><span aria-hidden="true">↻</span> Attempt ${part.attempt} failed: ${spelt(part.error?.data?.message ?? "")}</p>`;
  return null;
});

function Thought({ part, tools, isOpen }) {
  const [choice, choose] = useState(null);
  const isShown = choice ?? tools.density === "everything";
  if (!part.text.trim()) return null;
  const took = part.time?.end ? `for ${duration(part.time.end - part.time.start)}` : isOpen ? html`<${Ticking} since=${part.time?.start ?? Date.now()} until=${tools.until} />` : "";
  return html`<div class="thought">
    <button class="call-line" aria-expanded=${isShown ? "true" : "false"} onClick=${() => choose(!isShown)}>
      <span class="call-glyph" aria-hidden="true">${isShown ? "▾" : "▸"}</span><span class="dim">Thought ${took}</span>
    </button>
    ${isShown && html`<div class="typed dim">${calm(part.text)}</div>`}
  </div>`;
}

function Failure({ error }) {
  const words = error.data?.message || error.name;
  if (error.name === "MessageAbortedError") return html`<p class="mark mark-warn"><span aria-hidden="true">■</span> ${spelt(words)}</p>`;
  return html`<p class="mark mark-bad"><span aria-hidden="true">×</span> ${spelt(words)}</p>`;
}

/** What an answer without a failure lacks. */
function Lack({ info, parts }) {
  const isSaid = info.structured !== undefined || parts.some((part) => SEEN.includes(part.type) && part.text?.trim() !== "");
  const words = info.finish === "length" ? "cut off: the answer reached the model's output limit" : info.finish && !isSaid && info.summary !== true ? "the model's answer is empty" : "";
  return words ? html`<p class="mark mark-warn"><span aria-hidden="true">■</span> ${words}</p>` : null;
}

function News({ info }) {
  const keys = info.updates.map((update) => update.key);
  return html`<details class="mark"><summary><span aria-hidden="true">◦</span> The model was told of a change: ${spelt(keys.join(", "))}</summary>
    ${info.updates.map((update) => html`<pre tabindex="0" key=${update.key}>${calm(update.text.slice(0, LONG_CHARS))}</pre>`)}</details>`;
}
