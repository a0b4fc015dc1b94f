/**
 * Markup as tagged templates: everything interpolated is escaped unless it is markup itself.
 *
 * `raw` is for text that was made by this package (glyphs, layout numbers) or already escaped; views of other
 * packages have no use for it.
 */
import { html as tag, raw } from "hono/html";

/** A piece of finished markup. */
export type Html = ReturnType<typeof raw>;

/** What may stand in a template: markup, text, numbers, lists of those, or nothing. */
export type Content = Html | string | number | null | undefined | false | readonly Content[];

/**
 * Builds markup. Text is escaped; `null`, `undefined` and `false` print nothing; lists are joined. Data must be awaited
 * before it is rendered: a promise inside is a programming error.
 */
export function html(strings: TemplateStringsArray, ...values: readonly Content[]): Html {
  const result = tag(strings, ...values);
  if (result instanceof Promise) throw new TypeError("await data before rendering it");
  return result;
}

export { raw };
