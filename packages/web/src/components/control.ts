/**
 * Buttons, fields and the copy snippet.
 */
import { html, raw, type Content, type Html } from "../html.ts";
import { glyph } from "./status.ts";

/** How much a button says "act". One primary per view; red only inside a plan. */
export type ButtonKind = "primary" | "plain" | "danger" | "danger-fill";

/** A link that looks like a button, because it leads somewhere. */
export function linkButton(options: {
  readonly href: string;
  readonly label: string;
  readonly kind?: ButtonKind;
}): Html {
  return html`<a class="button ${options.kind ?? "plain"}" href="${options.href}">${options.label}</a>`;
}

/** A button that submits its form. */
export function submitButton(options: { readonly label: string; readonly kind?: ButtonKind }): Html {
  return html`<button class="button ${options.kind ?? "primary"}" type="submit">${options.label}</button>`;
}

/** One labelled input. Required unless `optional`; an error is tied to the field. */
export function field(options: {
  readonly name: string;
  readonly label: string;
  readonly value?: string;
  readonly placeholder?: string;
  readonly hint?: string;
  readonly error?: string;
  readonly optional?: boolean;
  readonly suggestions?: readonly string[];
}): Html {
  const described = [options.hint && `${options.name}-hint`, options.error && `${options.name}-error`]
    .filter(Boolean)
    .join(" ");
  return html`<div class="field">
    <label for="${options.name}"
      >${options.label}${options.optional ? html` <span class="hint">optional</span>` : null}</label
    >
    <input
      id="${options.name}"
      name="${options.name}"
      value="${options.value ?? ""}"
      placeholder="${options.placeholder ?? ""}"
      autocomplete="off"
      ${options.optional ? null : raw("required")}
      ${options.error ? raw('aria-invalid="true"') : null}
      ${described ? html`aria-describedby="${described}"` : null}
      ${options.suggestions ? html`list="${options.name}-list"` : null}
    />
    ${options.suggestions ? html`<datalist id="${options.name}-list">${options.suggestions.map((item) => html`<option value="${item}"></option>`)}</datalist>` : null}
    ${options.hint ? html`<span class="hint" id="${options.name}-hint">${options.hint}</span>` : null}
    ${options.error ? html`<span class="error" id="${options.name}-error">${glyph("bad")}${options.error}</span>` : null}
  </div>`;
}

/** One line to copy. `id` must be unique on the page. */
export function snippet(id: string, text: string): Html {
  return html`<div class="snippet">
    <code id="${id}" tabindex="0">${text}</code
    ><button type="button" data-copy="${id}" aria-label="Copy">
      ${raw(
        '<svg width="14" height="14" viewBox="0 0 16 16" fill="none" stroke="currentColor" stroke-width="1.4" aria-hidden="true"><rect x="5.5" y="5.5" width="8" height="8" rx="1.5"/><path d="M10.5 5.5v-2a1 1 0 0 0-1-1h-6a1 1 0 0 0-1 1v6a1 1 0 0 0 1 1h2"/></svg>',
      )}
    </button>
  </div>`;
}

/** Several lines of machine text. */
export function code(text: Content): Html {
  return html`<pre class="code" tabindex="0">${text}</pre>`;
}
