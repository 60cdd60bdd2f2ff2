// Cards for what waits for the user. They stand in the dock only, where no text of a transcript can stand.
import { html, useEffect, useRef, useState } from "./html.js";
import { post } from "./api.js";
import { Diff } from "./diff.js";
import { Problem } from "./pieces.js";
import { spelt } from "./format.js";

const ARMED_MS = 400; // Keys that were meant for something else do not answer.

/** `callOf` finds the call that asks, if its message is known. */
export function Asks({ permissions, questions, sessionId, openSession, callOf }) {
  return html`<div class="asks">
    ${permissions.map((one) => html`<${Permission} request=${one} call=${callOf(one)} key=${one.id} isChild=${one.sessionID !== sessionId} openSession=${openSession} />`)}
    ${questions.map((one) => html`<${Questions} request=${one} key=${one.id} isChild=${one.sessionID !== sessionId} openSession=${openSession} />`)}
  </div>`;
}

function useAnswer() {
  const [state, set] = useState({ isSending: false, error: null });
  const send = async (path, body) => {
    set({ isSending: true, error: null });
    try {
      await post(path, body);
    } catch (error) {
      if (error.status === 404 || error.status === 409) set({ isSending: true, error: { message: "It was answered elsewhere." } });
      else set({ isSending: false, error });
    }
  };
  return { ...state, send };
}

function Permission({ request, call, isChild, openSession }) {
  const { isSending, error, send } = useAnswer();
  const [advice, setAdvice] = useState(null);
  const came = useRef(Date.now());
  const path = `/permission/${request.id}/reply`;
  const reply = (answer, message) => send(path, message ? { reply: answer, message } : { reply: answer });
  const pressed = (event) => {
    if (event.target.tagName === "INPUT" || Date.now() - came.current < ARMED_MS) return;
    const answer = { y: "once", a: "always", n: "reject" }[event.key];
    if (answer && !event.ctrlKey && !event.metaKey && !isSending) {
      event.preventDefault();
      reply(answer);
    }
  };
  const { metadata = {} } = request;
  const leaves = request.permission === "external_directory";
  const asked = request.patterns.join("\n");
  const command = subjectOf(request);
  const always = request.always.join("\n");
  return html`<section class="ask" role="group" aria-label=${`Permission for ${request.permission}`} onKeyDown=${pressed}>
    <header><span class="ask-word">Waiting for you</span><b>${leaves && call ? spelt(call.tool) : spelt(request.permission)}</b>${leaves && html`<span>outside of the project</span>`}
      ${isChild && openSession && html`<button class="link" onClick=${() => openSession(request.sessionID)}>in a child session</button>`}</header>
    <div class="ask-body" tabindex="0" role="group" aria-label="What is asked for">
    <pre class="ask-text" tabindex="0">${spelt(command)}</pre>
    ${asked !== command && asked !== always && html`<p class="note">Asked for: <${Patterns} patterns=${request.patterns} /></p>`}
    ${typeof metadata.diff === "string" && html`<${Diff} patch=${metadata.diff} label="Changes that are asked for" />`}
    ${always && html`<p class="note">${asked === always && asked !== command ? "Asked for, and allowed by “Always”: " : "“Always” allows "}<${Patterns} patterns=${request.always} /> in this project.</p>`}
    </div>
    ${error && html`<${Problem} error=${error} />`}
    <div class="ask-buttons">
      <button class="primary" disabled=${isSending} onClick=${() => reply("once")}>Allow once <kbd>y</kbd></button>
      <button disabled=${isSending} onClick=${() => reply("always")}>Always <kbd>a</kbd></button>
      <button disabled=${isSending} onClick=${() => reply("reject")}>Refuse <kbd>n</kbd></button>
      ${advice === null
        ? html`<button class="quiet" disabled=${isSending} onClick=${() => setAdvice("")}>Refuse with advice</button>`
        : html`<form class="ask-advice" onSubmit=${(event) => { event.preventDefault(); reply("reject", advice); }}>
            <input value=${advice} placeholder="What should the model do instead?" aria-label="Advice for the model" onInput=${(event) => setAdvice(event.target.value)} />
            <button disabled=${isSending || !advice.trim()}>Send</button></form>`}
    </div>
  </section>`;
}

function Patterns({ patterns }) {
  return patterns.map((one, nth) => html`<code key=${nth}>${spelt(one)}</code> `);
}

/** What a permission request asks for, in a few words. */
export function requestLine(request) {
  return `${request.permission === "external_directory" ? "outside of the project" : request.permission}: ${subjectOf(request)}`;
}

/** What a permission request is about: its command, the file outside of the project, or its patterns. */
function subjectOf({ permission, patterns, metadata = {} }) {
  return metadata.command ?? (permission === "external_directory" ? metadata.filepath : null) ?? patterns.join("\n");
}

function Questions({ request, isChild, openSession }) {
  const { isSending, error, send } = useAnswer();
  const [chosen, choose] = useState(request.questions.map(() => []));
  const [typed, type] = useState(request.questions.map(() => ""));
  const answers = chosen.map((labels, nth) => (typed[nth].trim() ? [...labels, typed[nth].trim()] : labels));
  const isReady = answers.every((some) => some.length > 0);
  const pick = (nth, label, isMany) =>
    choose((before) => before.map((labels, place) => (place !== nth ? labels : isMany ? (labels.includes(label) ? labels.filter((one) => one !== label) : [...labels, label]) : [label])));
  return html`<section class="ask" role="group" aria-label="Question of the model">
    <header><span class="ask-word">Waiting for you</span><b>question</b>
      ${isChild && openSession && html`<button class="link" onClick=${() => openSession(request.sessionID)}>in a child session</button>`}</header>
    <div class="ask-body" tabindex="0" role="group" aria-label="What is asked">
    ${request.questions.map((one, nth) => html`<fieldset key=${nth}>
      <legend>${spelt(one.question)}</legend>
      ${one.options.map((option) => html`<label class="option" key=${option.label}>
        <input type=${one.multiple ? "checkbox" : "radio"} name=${`${request.id}-${nth}`} checked=${chosen[nth].includes(option.label)}
          onChange=${() => pick(nth, option.label, one.multiple)} />
        <span>${spelt(option.label)} ${option.description !== option.label && html`<span class="dim">${spelt(option.description)}</span>`}</span></label>`)}
      ${one.custom !== false && html`<input class="option-own" placeholder="Another answer" aria-label=${`Another answer to: ${one.question}`} value=${typed[nth]}
        onInput=${(event) => type((before) => before.with(nth, event.target.value))} />`}
    </fieldset>`)}
    </div>
    ${error && html`<${Problem} error=${error} />`}
    <div class="ask-buttons">
      <button class="primary" disabled=${isSending || !isReady} onClick=${() => send(`/question/${request.id}/reply`, { answers })}>Answer</button>
      <button disabled=${isSending} onClick=${() => send(`/question/${request.id}/reject`, undefined)}>Dismiss</button>
    </div>
  </section>`;
}
