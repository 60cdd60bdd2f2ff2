// Output of commands: colours are shown, every other control sequence is dropped.

const SEQUENCE =
  // CSI, OSC and other strings up to their end, two-character escapes, and lone control characters.
  // No character may belong to two neighbouring repetitions: every way to divide a long run would be tried.
  /\u001b\[([0-9;:?<=>]*)([ -/]*)([@-~])|\u001b[\]PX^_][^\u0007\u001b]*(?:\u0007|\u001b\\|$)|\u001b[ -/]*[0-~]?|[\u0000-\u0008\u000b\u000c\u000e-\u001a\u001c-\u001f\u007f\u0080-\u009f]/g;

const NAMES = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];

/** Pieces of the text: [{text, style}], where the style is a list of class names or "". */
export function pieces(text) {
  const found = [];
  let state = { fore: "", back: "", bold: false, faint: false, italic: false, under: false };
  let last = 0;
  const put = (end) => {
    if (end > last) found.push({ text: text.slice(last, end), style: style(state) });
  };
  for (const match of text.matchAll(SEQUENCE)) {
    put(match.index);
    last = match.index + match[0].length;
    if (match[3] === "m" && !match[2]) state = coloured(state, match[1]);
  }
  put(text.length);
  return found;
}

/** The text without any control sequence, with carriage returns as the line breaks they look like. */
export function plain(text) {
  return text.replace(/\r\n?/g, "\n").replace(SEQUENCE, "");
}

function style(state) {
  const names = [];
  if (state.fore) names.push(`ansi-${state.fore}`);
  if (state.back) names.push(`ansi-on-${state.back}`);
  for (const name of ["bold", "faint", "italic", "under"]) if (state[name]) names.push(`ansi-${name}`);
  return names.join(" ");
}

function coloured(state, codes) {
  const next = { ...state };
  const numbers = codes.split(/[;:]/).map(Number);
  for (let index = 0; index < numbers.length; index += 1) {
    const code = numbers[index];
    if (code === 0) Object.assign(next, { fore: "", back: "", bold: false, faint: false, italic: false, under: false });
    else if (code === 1) next.bold = true;
    else if (code === 2) next.faint = true;
    else if (code === 3) next.italic = true;
    else if (code === 4) next.under = true;
    else if (code === 22) next.bold = next.faint = false;
    else if (code === 23) next.italic = false;
    else if (code === 24) next.under = false;
    else if (code >= 30 && code <= 37) next.fore = NAMES[code - 30];
    else if (code >= 90 && code <= 97) next.fore = NAMES[code - 90];
    else if (code >= 40 && code <= 47) next.back = NAMES[code - 40];
    else if (code === 39) next.fore = "";
    else if (code === 49) next.back = "";
    else if (code === 38 || code === 48) index += numbers[index + 1] === 5 ? 2 : 4;
  }
  return next;
}
