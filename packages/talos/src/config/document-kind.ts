/**
 * What is known of a kind of configuration document, and the ways to write it down. The tables that
 * use it are sorted by subject; `document-kinds.ts` joins them.
 */
import { object, text, type Shape } from "./shape.ts";

/** What is known of a kind of document. */
export interface DocumentKind {
  /** First Talos minor that reads it. */
  readonly minor: number;
  /** Whether it must have a name. */
  readonly named: boolean;
  /** Whether it configures a link of its name, of which there may be only one. */
  readonly link: boolean;
  readonly shape: Shape;
}

const common = { apiVersion: text, kind: text };

/** A document of which there is one. */
export const plain = (minor: number, fields: Readonly<Record<string, Shape>>): DocumentKind => ({
  minor,
  named: false,
  link: false,
  shape: object({ ...common, ...fields }),
});

/** A document with a name. */
export const named = (minor: number, fields: Readonly<Record<string, Shape>>): DocumentKind => ({
  ...plain(minor, { name: text, ...fields }),
  named: true,
});
