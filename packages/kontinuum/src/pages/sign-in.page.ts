/**
 * Signing in: where the button leads, what went wrong last time, and nothing else.
 */
import { html, linkButton, notice, page } from "@kontinuum/web";

/** Renders the page. It never redirects by itself: a person presses the button. */
export function signInPage(options: {
  readonly host: string;
  readonly issuer: string;
  readonly version: string;
  readonly error?: string;
}): string {
  return page({
    title: "Sign in - Kontinuum",
    body: html`<div class="signin">
      <main class="signin-form">
        <h1>Sign in to ${options.host}</h1>
        ${options.error ? html`<div role="alert">${notice({ tone: "bad", fact: options.error, rest: "" })}</div>` : null}
        <p>You continue at ${options.issuer}.</p>
        <p>${linkButton({ href: "/app/login", label: "Continue with SSO", kind: "primary" })}</p>
        <p class="nav-foot">Kontinuum ${options.version}</p>
      </main>
    </div>`,
  });
}
