// Makes HTML of markdown, outside of the page, so that a slow text can be given up. The page sanitises what comes back.
import MarkdownIt from "./vendor/markdown-it.js";
import { highlightHTML } from "./vendor/highlight/index.js";

const CODE_CHARS_MAX = 20_000;
const CODE_LINES_MAX = 1000;
const WORD_CHARS_MAX = 200;

const LANGUAGES = {
  bash: "bash", sh: "bash", shell: "bash", zsh: "bash", console: "bash", c: "c", "c++": "c", cpp: "c", css: "css", diff: "diff",
  docker: "docker", dockerfile: "docker", go: "go", golang: "go", html: "html", http: "http", ini: "ini", java: "java",
  javascript: "js", js: "js", jsx: "js", mjs: "js", json: "json", jsonc: "json", lua: "lua", make: "make", makefile: "make",
  markdown: "md", md: "md", perl: "pl", pl: "pl", python: "py", py: "py", rust: "rs", rs: "rs", sql: "sql", toml: "toml",
  ts: "ts", tsx: "ts", typescript: "ts", xml: "xml", yaml: "yaml", yml: "yaml",
};

const md = new MarkdownIt({ html: false, linkify: true, breaks: false, maxNesting: 60 });
md.linkify?.set?.({ fuzzyLink: false, fuzzyEmail: false });
md.validateLink = (url) => /^(https?:|mailto:|#)/i.test(url.trim());

let fences = [];
let mark = "";

function fence(tokens, index) {
  const token = tokens[index];
  const language = (token.info ?? "").trim().split(/\s+/, 1)[0].toLowerCase();
  fences.push({ text: token.content, language });
  return `<pre>${mark}${fences.length - 1}${mark}</pre>\n`;
}

md.renderer.rules.fence = fence;
md.renderer.rules.code_block = fence;
// A remote image would tell its host who reads this and when; the reader may open it.
md.renderer.rules.image = (tokens, index) => {
  const address = tokens[index].attrGet("src") ?? "";
  const words = md.utils.escapeHtml(tokens[index].content || "image");
  return `<a href="${md.utils.escapeHtml(address)}">[image: ${words}, not loaded]</a>`;
};
// Headings of a message stand below those of the page.
const lower = (tokens, index) => {
  const level = Math.min(6, Number(tokens[index].tag[1]) + 2);
  return tokens[index].nesting === 1 ? `<h${level}>` : `</h${level}>\n`;
};
md.renderer.rules.heading_open = lower;
md.renderer.rules.heading_close = lower;

function isTooMuch(text) {
  return (
    text.length > CODE_CHARS_MAX ||
    text.split("\n").length > CODE_LINES_MAX ||
    text.split(/\W+/).some((word) => word.length > WORD_CHARS_MAX)
  );
}

async function code({ text, language }) {
  const named = LANGUAGES[language];
  if (!named || isTooMuch(text)) return md.utils.escapeHtml(text);
  try {
    return await highlightHTML(text, named, { block: false });
  } catch {
    return md.utils.escapeHtml(text);
  }
}

export async function rendered(text) {
  fences = [];
  mark = `\u0001${Math.random().toString(36).slice(2)}\u0001`;
  const html = md.render(text);
  const own = fences;
  const sign = mark;
  const blocks = await Promise.all(own.map(code));
  return html.split(sign).map((piece, nth) => (nth % 2 ? `<code>${blocks[Number(piece)]}</code>` : piece)).join("");
}

self.onmessage = async ({ data }) => {
  if (data.code !== undefined) {
    self.postMessage({ id: data.id, html: await code({ text: data.code, language: data.language }) });
    return;
  }
  self.postMessage({ id: data.id, html: await rendered(data.text) });
};
