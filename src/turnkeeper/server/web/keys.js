// The keys of the page: one table, from which the help is made and by which keys are found.
import { html } from "./html.js";
import { Sheet } from "./pieces.js";
import { isTyping } from "./feed.js";

export const KEYS = [
  { key: "?", does: "help", name: "Show these keys" },
  { key: "/", does: "search", name: "Search" },
  { key: "j", does: "next", name: "Next message" },
  { key: "k", does: "previous", name: "Previous message" },
  { key: "J", does: "nextPrompt", name: "Next prompt" },
  { key: "K", does: "previousPrompt", name: "Previous prompt" },
  { key: "o", does: "density", name: "Fold or unfold thoughts and calls" },
  { key: "t", does: "timeline", name: "Timeline" },
  { key: "[", does: "back", name: "One turn back in time" },
  { key: "]", does: "forth", name: "One turn forward in time" },
  { key: "g", does: "sessions", name: "All sessions" },
  { key: "w", does: "ask", name: "To what waits for you" },
  { key: "i", does: "prompt", name: "Write a prompt" },
  { key: "Escape", does: "leave", name: "Leave the box, or the past" },
];

/** The action of a key press; null for keys that are typed, or not ours. */
export function action(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return null;
  if (isTyping(event.target) && event.key !== "Escape") return null;
  if (event.target?.type === "range" && event.key !== "Escape") return null;
  return KEYS.find((one) => one.key === event.key)?.does ?? null;
}

export function Help({ onClose }) {
  return html`<${Sheet} title="Keys" onClose=${onClose}><dl class="keys">${KEYS.map((one) => html`<div key=${one.key}><dt><kbd>${one.key}</kbd></dt><dd>${one.name}</dd></div>`)}
    <div><dt><kbd>Enter</kbd></dt><dd>Send; <kbd>Shift</kbd> <kbd>Enter</kbd> is a new line</dd></div>
    <div><dt><kbd>Ctrl</kbd> <kbd>.</kbd></dt><dd>Stop the session</dd></div>
    <div><dt><kbd>y</kbd> <kbd>a</kbd> <kbd>n</kbd></dt><dd>Answer a card that has the focus</dd></div></dl><//>`;
}
