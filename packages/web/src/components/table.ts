/**
 * The table: the main tool. Plain rows with dividers; on a phone the same markup becomes a list.
 */
import { html, type Content, type Html } from "../html.ts";

/** One column. */
export interface Column<Row> {
  readonly title: string;
  /** Numbers, sizes and times stand right. */
  readonly align?: "right";
  /** 1 always shows, 2 hides below 1024 px, 3 below 1280 px. Default 1. */
  readonly priority?: 1 | 2 | 3;
  /** The column that names the row. */
  readonly isName?: boolean;
  cell(row: Row): Content;
}

/** A table of rows. `rowId` must come from the object's uid, never from its position: live updates match by it. */
export function table<Row>(options: {
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  rowId(row: Row): string;
  /** Rows of objects that are being deleted fade. */
  isLeaving?(row: Row): boolean;
}): Html {
  const classes = (column: Column<Row>): string =>
    [
      column.align === "right" ? "num" : "",
      column.isName ? "name" : "",
      column.priority === 2 ? "prio-2" : column.priority === 3 ? "prio-3" : "",
    ]
      .filter(Boolean)
      .join(" ");
  return html`<div class="scroll" tabindex="0" role="group" aria-label="${options.label}">
    <table class="data" role="table" aria-label="${options.label}">
      <thead role="rowgroup">
        <tr role="row">
          ${options.columns.map(
            (column) =>
              html`<th role="columnheader" scope="col" class="${classes(column)}">${column.title}</th>`,
          )}
        </tr>
      </thead>
      <tbody role="rowgroup">
        ${options.rows.map(
          (row) =>
            html`<tr
              role="row"
              id="${options.rowId(row)}"
              class="${options.isLeaving?.(row) ? "leaving" : ""}"
            >
              ${options.columns.map(
                (column) => html`<td role="cell" class="${classes(column)}">${column.cell(row)}</td>`,
              )}
            </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}
