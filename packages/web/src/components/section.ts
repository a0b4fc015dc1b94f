/**
 * Sections and what stands in them besides tables: facts, conditions, steps, notices, empty states.
 */
import { html, type Content, type Html } from "../html.ts";
import { glyph, type Tone } from "./status.ts";
import { age } from "./time.ts";

/** A frame with a title, an optional count and at most one action. Sections are never nested. */
export function section(options: {
  readonly title: string;
  readonly count?: number;
  readonly action?: Content;
  readonly body: Content;
}): Html {
  return html`<section class="section" aria-label="${options.title}">
    <div class="section-head">
      <h2>${options.title}</h2>
      ${
        options.count === undefined ? null : html`<span class="count">${options.count}</span>`
      }${options.action === undefined ? null : html`<span class="action">${options.action}</span>`}
    </div>
    ${options.body}
  </section>`;
}

/** Name and value pairs. A missing value reads `-`. */
export function facts(pairs: readonly (readonly [string, Content])[]): Html {
  return html`<dl class="facts">
    ${pairs.map(
      ([name, value]) =>
        html`<div>
          <dt>${name}</dt>
          <dd>${value === undefined || value === null || value === "" ? "-" : value}</dd>
        </div>`,
    )}
  </dl>`;
}

/** One condition as people read it: the tone says what it means, not whether it is true. */
export interface ConditionView {
  readonly type: string;
  readonly tone: Tone;
  readonly reason: string;
  readonly message: string;
  /** RFC 3339. */
  readonly since: string;
}

/** A list of conditions, newest first. */
export function conditions(list: readonly ConditionView[], nowMs: number): Html {
  if (list.length === 0) return html`<p class="section-body">No conditions yet.</p>`;
  const sorted = [...list].sort((a, b) => (a.since < b.since ? 1 : a.since > b.since ? -1 : 0));
  return html`<ul class="conditions">
    ${sorted.map(
      (item) =>
        html`<li>
          ${glyph(item.tone)}<span><b>${item.type}</b> <span class="reason">${item.reason}</span></span
          >${age(item.since, nowMs)}${
            item.message === ""
              ? null
              : html`<span class="message"
                  >${item.message.charAt(0).toUpperCase()}${item.message.slice(1)}</span
                >`
          }
        </li>`,
    )}
  </ul>`;
}

/** One step of a path, e.g. of a zone to Ready. */
export interface StepView {
  readonly title: string;
  readonly tone: Tone;
  readonly detail: Content;
}

/** Steps in a row. */
export function steps(list: readonly StepView[]): Html {
  return html`<ol class="section steps">
    ${list.map(
      (step) =>
        html`<li>
          <span class="status tone-${step.tone}">${glyph(step.tone)}<span>${step.title}</span></span>
          <p>${step.detail}</p>
        </li>`,
    )}
  </ol>`;
}

/** A line for a lasting condition: a bold fact, a plain consequence, at most one link. */
export function notice(options: {
  readonly tone: Tone;
  readonly fact: string;
  readonly rest: Content;
}): Html {
  return html`<div class="notice tone-${options.tone}">
    ${glyph(options.tone)}
    <p><b>${options.fact}</b> ${options.rest}</p>
  </div>`;
}

/** Nothing here yet: what this is, what it needs, and the way on. */
export function empty(options: {
  readonly title: string;
  readonly text: string;
  readonly action?: Content;
}): Html {
  return html`<div class="empty">
    <h3>${options.title}</h3>
    <p>${options.text}</p>
    ${options.action}
  </div>`;
}
